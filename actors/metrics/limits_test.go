package metrics

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ddq-io/ddq/actors/dispatch"
	"github.com/ddq-io/ddq/store"
)

// values are the series of a metric that are not zero, by the values of their labels but for the topic.
func values(t *testing.T, reg *prometheus.Registry, name string) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := ""
			for _, l := range m.GetLabel() {
				if l.GetName() != "topic" {
					labels += l.GetValue() + " "
				}
			}
			if n := m.GetGauge().GetValue() + m.GetCounter().GetValue(); f.GetName() == name && n != 0 {
				found[labels] = n
			}
		}
	}
	return found
}

// TestLimitsAreMeasured has a store refuse, lose a token, and answer late.
func TestLimitsAreMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		m := New(reg)
		gauges := m.Topic("mail")
		limits := store.TopicLimits{Rate: store.Rate{Count: 1, Period: time.Minute, Burst: 1}, Namespace: 3}
		core := dispatch.NewTopic("mail")
		var call *dispatch.TakeCall
		step := func(do func(now time.Time)) {
			do(time.Now())
			fx := core.Effects()
			if len(fx.Take) > 0 {
				call = fx.Take[0]
				call.Holders = store.NewTokens(call.Room)
			}
			gauges.Count(&fx.Counts)
			gauges.Set(core)
		}
		answer := func(lost int, wants ...store.Taking) func(time.Time) {
			return func(now time.Time) {
				core.Taken(now, &dispatch.Taken{Reply: &store.TakeReply{Now: now, Wants: wants, Lost: lost}})
			}
		}
		expect := func(name string, want map[string]float64) {
			t.Helper()
			if got := values(t, reg, name); !maps.Equal(got, want) {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
		core.Shards([]bool{true})
		step(func(now time.Time) { core.Configure(now, 10, limits); gauges.Limited(m, "mail", &limits) })
		step(func(now time.Time) {
			core.Subscribe(now, &dispatch.Subscription{ID: 1, MaxInFlight: 5})
			core.Grant(now, 1, 5)
		})
		step(func(now time.Time) { core.Ready(now, 0, []store.Entry{{ID: "a"}, {ID: "b"}}) })
		time.Sleep(3 * time.Second)
		expect("ddq_limit_wait_seconds", map[string]float64{"": 3})
		marks := store.TokenReceipt{Topic: store.TokenMark{To: 1}}
		step(answer(0,
			store.Taking{Status: store.Granted, At: time.Now(), Receipt: marks},
			store.Taking{Status: store.NoPermit, Lacks: store.Limit{Key: store.CapKey("mail", store.NamespaceCap)}, Again: time.Now().Add(time.Minute)},
		))
		expect("ddq_waiting_tasks", map[string]float64{"concurrency namespace ": 1})
		expect("ddq_limit_refusals_total", map[string]float64{"concurrency namespace ": 1})

		time.Sleep(time.Minute)
		step(func(now time.Time) { core.Tick(now, now) })
		step(answer(0, store.Taking{Status: store.NoToken, Lacks: store.Limit{Rate: true, Key: store.LimitKey{Topic: "mail"}}, Again: time.Now().Add(time.Minute)}))
		expect("ddq_waiting_tasks", map[string]float64{"rate topic ": 1})
		expect("ddq_limit_refusals_total", map[string]float64{"concurrency namespace ": 1, "rate topic ": 1})
		expect("ddq_limit_wait_seconds", map[string]float64{"": 3})
		// Tokens of tasks that were not held.
		gauges.Count(&dispatch.LimitCounts{Returned: 2, Lost: 1})
		expect("ddq_unused_tokens_total", map[string]float64{"returned ": 2, "lost ": 1})

		// A wait is forgotten, ten minutes later at the latest.
		time.Sleep(4 * time.Minute)
		if topics, longest := m.Limits.Waited(time.Second); topics != 1 || longest != 3*time.Second {
			t.Errorf("%d topics waited, for up to %v", topics, longest)
		}
		time.Sleep(2 * waitWindow)
		if topics, _ := m.Limits.Waited(time.Second); topics != 0 {
			t.Errorf("%d topics waited, and that was long ago", topics)
		}
		m.Forget("mail")
		expect("ddq_limit_refusals_total", map[string]float64{})
		expect("ddq_unused_tokens_total", map[string]float64{})
	})
}
