package actors_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// waits are the gauges of what tasks of a topic wait for.
func waits(t *testing.T, s *service.Service) (rate, concurrency, order float64) {
	t.Helper()
	for labels, n := range waitsOf(t, s) {
		switch what, _, _ := strings.Cut(labels, " of "); what {
		case actors.WaitsForRate:
			rate += n
		case actors.WaitsForConcurrency:
			concurrency += n
		case actors.WaitsForOrder:
			order += n
		}
	}
	return rate, concurrency, order
}

// waitsOf are those that are not zero, by what for and of what.
func waitsOf(t *testing.T, s *service.Service) map[string]float64 {
	t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(actors.WaitGauges(s.Node().Metrics()))
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			by := make(map[string]string)
			for _, label := range m.GetLabel() {
				by[label.GetName()] = label.GetValue()
			}
			if n := m.GetGauge().GetValue(); n != 0 {
				found[by["for"]+" of "+by["of"]] += n
			}
		}
	}
	return found
}

// waitGauges counts them.
func waitGauges(s *service.Service) (n int) {
	found := make(chan prometheus.Metric, 100)
	actors.WaitGauges(s.Node().Metrics()).Collect(found)
	return len(found)
}

// TestMetricsTellWhatTasksWaitFor has tasks wait for each thing, and none in the end.
func TestMetricsTellWhatTasksWaitFor(t *testing.T) {
	for name, tt := range map[string]struct {
		limits service.TopicChange
		traits store.Traits
		want   string // of four tasks, of which one is held, three wait for that
	}{
		"nothing":             {},
		"a rate":              {limits: service.TopicChange{Rate: &store.Rate{Count: 1, Period: time.Minute, Burst: 1}}, want: "rate of topic"},
		"the rate of a key":   {limits: service.TopicChange{KeyRate: &store.Rate{Kind: store.SlidingWindow, Count: 1, Period: time.Minute}}, traits: store.Traits{RateKey: "k"}, want: "rate of key"},
		"a cap":               {limits: service.TopicChange{Concurrency: new(1)}, want: "concurrency of topic"},
		"the cap of a key":    {limits: service.TopicChange{KeyConcurrency: new(1)}, traits: store.Traits{ConcurrencyKey: "k"}, want: "concurrency of key"},
		"one another":         {traits: store.Traits{OrderingKey: "k"}, want: "order of key"},
		"limits that are off": {limits: service.TopicChange{Concurrency: new(0)}, traits: store.Traits{ConcurrencyKey: "k"}},
	} {
		t.Run(name, func(t *testing.T) {
			servicetest.Bubble(t, actors.Config{Topic: store.Topic{Shards: 1}}, func(t *testing.T, s *service.Service) {
				if _, err := s.Topics.Create(t.Context(), "mail", tt.limits); err != nil {
					t.Fatal(err)
				}
				w := servicetest.Subscribe(t, s, "mail", 10)
				for range 4 {
					task := servicetest.After("mail", "", time.Second)
					task.Task.Traits = &tt.traits
					if out := servicetest.EnqueueOne(t, s, task); out.Err != nil {
						t.Fatal(out.Err)
					}
				}
				servicetest.Idle(1500 * time.Millisecond)
				want := make(map[string]float64)
				if tt.want != "" {
					want[tt.want] = 3
				}
				if got := waitsOf(t, s); !maps.Equal(got, want) {
					t.Errorf("tasks wait for %v, want %v", got, want)
				}
				for range 30 {
					for _, d := range w.Take() {
						w.Settle(subscription.SettleAck, d)
					}
					servicetest.Idle(10 * time.Second)
				}
				if rate, concurrency, order := waits(t, s); rate+concurrency+order != 0 {
					t.Errorf("in the end %v wait for a rate, %v for a cap, %v for order", rate, concurrency, order)
				}
			})
		})
	}
}

// TestMetricsForgetWhatWaitedUnderLimits: without limits nothing waits for them, and a
// topic that is gone has no gauges.
func TestMetricsForgetWhatWaitedUnderLimits(t *testing.T) {
	servicetest.Bubble(t, actors.Config{Topic: store.Topic{Shards: 4}}, func(t *testing.T, s *service.Service) {
		if _, err := s.Topics.Create(t.Context(), "mail", service.TopicChange{Rate: &store.Rate{Count: 1, Period: time.Hour}}); err != nil {
			t.Fatal(err)
		}
		servicetest.Subscribe(t, s, "mail", 10)
		for i := range 8 {
			servicetest.EnqueueOne(t, s, servicetest.After("mail", fmt.Sprint(i), time.Second))
		}
		servicetest.Idle(1500 * time.Millisecond)
		if rate, _, _ := waits(t, s); rate != 7 {
			t.Errorf("%v wait for the rate, want 7", rate)
		}
		if _, err := s.Topics.Configure(t.Context(), "mail", service.TopicChange{Rate: &store.Rate{}, Concurrency: new(3)}); err != nil {
			t.Fatal(err)
		}
		servicetest.Idle(time.Second)
		if rate, concurrency, _ := waits(t, s); rate != 0 || concurrency != 4 {
			t.Errorf("%v wait for a rate and %v for a cap, want none and 4", rate, concurrency)
		}
		if err := s.Topics.Delete(t.Context(), "mail", true); err != nil {
			t.Fatal(err)
		}
		servicetest.Idle(time.Second)
		if n := waitGauges(s); n != 0 {
			t.Errorf("a topic that is gone has %d gauges", n)
		}
	})
}

// TestShardsTakeTheirCountWithThem: what waited in a shard does not count when another
// node owns it.
func TestShardsTakeTheirCountWithThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := servicetest.Start(t, actors.Config{Topic: store.Topic{Shards: 1}}, memstore.New())
		w := servicetest.Subscribe(t, s, "mail", 10)
		for i := range 4 {
			servicetest.EnqueueOne(t, s, servicetest.InLine("a", fmt.Sprint(i), time.Second))
		}
		servicetest.Idle(1500 * time.Millisecond)
		if _, _, order := waits(t, s); order != 3 {
			t.Errorf("%v wait, want 3", order)
		}
		for _, d := range w.Take() {
			w.Settle(subscription.SettleRelease, d)
		}
		s.Node().Stop(t.Context())
		if n := waitGauges(s); n != 0 {
			t.Errorf("a node that has stopped has %d gauges", n)
		}
		time.Sleep(5 * time.Second) // the actor library's dead-letter throttle ends by itself
	})
}

// TestFilterTellsWhatTasksWaitFor as a look at one of them does.
func TestFilterTellsWhatTasksWaitFor(t *testing.T) {
	servicetest.Bubble(t, actors.Config{Topic: store.Topic{Shards: 3}}, func(t *testing.T, s *service.Service) {
		if _, err := s.Topics.Create(t.Context(), "mail", service.TopicChange{KeyRate: &store.Rate{Count: 1, Period: time.Hour, Burst: 1}, KeyConcurrency: new(1)}); err != nil {
			t.Fatal(err)
		}
		servicetest.Subscribe(t, s, "mail", 10)
		for i, traits := range []store.Traits{{RateKey: "a"}, {RateKey: "a"}, {ConcurrencyKey: "b"}, {ConcurrencyKey: "b"}, {OrderingKey: "c"}, {OrderingKey: "c"}, {}} {
			task := servicetest.After("mail", fmt.Sprint(i), time.Second+time.Duration(i)*time.Millisecond)
			task.Task.Traits = &traits
			if traits.OrderingKey != "" {
				task.Task.ID = ""
			}
			servicetest.EnqueueOne(t, s, task)
		}
		servicetest.Idle(2 * time.Second)
		seen := map[service.WaitingFor]int{}
		for token := ""; ; {
			page, next, err := s.Finder.Find(t.Context(), "mail", service.TaskFilter{DueFrom: 1}, 2, token)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range page {
				one, err := s.Tasks.Get(t.Context(), "mail", f.ID)
				if err != nil || one.WaitingFor != f.WaitingFor || one.NextToken != f.NextToken {
					t.Errorf("%s waits for %d until %d, and by itself for %d until %d (%v)", f.ID, f.WaitingFor, f.NextToken, one.WaitingFor, one.NextToken, err)
				}
				seen[f.WaitingFor]++
			}
			if token = next; next == "" {
				break
			}
		}
		if seen[service.WaitsForRate] != 1 || seen[service.WaitsForConcurrency] != 1 || seen[service.WaitsForOrder] != 1 {
			t.Errorf("tasks by what they wait for: %v", seen)
		}
	})
}
