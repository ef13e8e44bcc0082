package topics

import (
	"strings"
	"testing"

	g "maragu.dev/gomponents"

	"github.com/ddq-io/ddq/api/ddqv1"
)

func TestLimitsSayWhatTheyAllowAndWhatWaits(t *testing.T) {
	page := func(policy *ddqv1.TopicPolicy) string {
		p := topicPage{DescribeTopicResponse: &ddqv1.DescribeTopicResponse{
			Topic: &ddqv1.Topic{Name: "mail", Policy: policy}, Depth: &ddqv1.Depth{Scheduled: 100, Ready: 1234, Running: 20, Dead: 3},
		}, Happened: &ddqv1.GetOverviewResponse{Topics: []*ddqv1.TopicOverview{{Pulse: &ddqv1.Pulse{Minute: &ddqv1.PulseWindow{PerSecond: &ddqv1.PulseRates{Delivered: 49.5}}}}}}}
		var text strings.Builder
		if err := (g.Group{p.held()}).Render(&text); err != nil {
			t.Fatal(err)
		}
		return text.String()
	}
	for _, none := range []*ddqv1.TopicPolicy{nil, {}, {Rate: &ddqv1.RateLimit{PeriodMs: 1000}, Concurrency: new(int32)}} {
		if got := page(none); got != "" {
			t.Errorf("a topic without limits says %s", got)
		}
	}
	got := page(&ddqv1.TopicPolicy{
		Rate: &ddqv1.RateLimit{Count: 50, PeriodMs: 1000, Burst: 100}, Concurrency: new(int32(20)), KeyRate: &ddqv1.RateLimit{Kind: ddqv1.RateKind_RATE_KIND_SLIDING_WINDOW, Count: 5, PeriodMs: 60_000},
		KeyConcurrency: new(int32(2)), MaxBacklog: new(int64(5000)), MaxDead: new(int64(10)), OverLimit: ddqv1.OverLimit_OVER_LIMIT_DEAD_LETTER,
	})
	for _, want := range []string{
		"1\u202f234 tasks are ready", "becomes a dead letter", "50 in 1.0 s, 100 at once after a rest", "delivered in the last minute: 50/s", "20 at a time", "20 running", "5 in 1 min 0 s at most, for each rate_key",
		"2 at a time, for each concurrency_key", "5\u202f000 tasks that wait", "1\u202f334 wait", "10 dead letters", "3 are dead",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not say %q:\n%s", want, got)
		}
	}
	if got := page(&ddqv1.TopicPolicy{MaxDead: new(int64(1)), OverLimit: ddqv1.OverLimit_OVER_LIMIT_WAIT}); !strings.Contains(got, "waits; no attempt is spent") {
		t.Error(got)
	}
}
