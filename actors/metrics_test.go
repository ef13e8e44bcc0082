package actors

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ddq-io/ddq/actors/metrics"
	"github.com/ddq-io/ddq/store"
)

// A topic that is closed leaves no series of its own behind, and those of others stay.
func TestMetricsForgetATopic(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := metrics.New(reg)
	none := countSeries(t, reg)
	showTopic(m, "mail")
	one := countSeries(t, reg)
	showTopic(m, "sms")
	m.Forget("mail")
	if got := countSeries(t, reg); got != one {
		t.Errorf("%d series with one of two topics closed, want %d", got, one)
	}
	m.Forget("sms")
	if got := countSeries(t, reg); got != none {
		t.Errorf("%d series with both closed, want %d", got, none)
	}
}

func countSeries(t *testing.T, reg *prometheus.Registry) (n int) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		n += len(f.GetMetric())
	}
	return n
}

// showTopic sets every gauge that a topic may have.
func showTopic(m *metrics.Metrics, name string) {
	g := m.Topic(name)
	g.Limited(m, name, &store.TopicLimits{
		Rate: store.Rate{Count: 1, Period: time.Second}, KeyRate: store.Rate{Count: 1, Period: time.Second},
		Concurrency: 1, KeyConcurrency: 1, Namespace: 1,
	})
	m.CountOrdered(name, 1)
	m.SetQueued(name, metrics.Depth{})
}

// Closing a topic costs the same however many others there are.
func BenchmarkMetricsForget(b *testing.B) {
	for _, topics := range []int{100, 2000} {
		b.Run(fmt.Sprint(topics), func(b *testing.B) {
			m := metrics.New(prometheus.NewRegistry())
			for i := range topics {
				showTopic(m, fmt.Sprint("topic-", i))
			}
			for b.Loop() {
				showTopic(m, "mail")
				m.Forget("mail")
			}
		})
	}
}
