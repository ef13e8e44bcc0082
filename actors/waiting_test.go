package actors

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// waits are the gauges of what tasks of a topic wait for.
func waits(t *testing.T, s *System) (rate, concurrency, order float64) {
	t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(s.metrics.waits)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, label := range m.GetLabel() {
				found[label.GetValue()] = m.GetGauge().GetValue()
			}
		}
	}
	return found[waitsForRate], found[waitsForConcurrency], found[waitsForOrder]
}

// waitGauges counts them.
func waitGauges(s *System) (n int) {
	found := make(chan prometheus.Metric, 100)
	s.metrics.waits.Collect(found)
	return len(found)
}

// TestMetricsTellWhatTasksWaitFor has tasks wait for each thing, and none in the end.
func TestMetricsTellWhatTasksWaitFor(t *testing.T) {
	for name, tt := range map[string]struct {
		limits                   TopicChange
		traits                   store.Traits
		rate, concurrency, order float64 // of four tasks, of which one is held
	}{
		"nothing":             {},
		"a rate":              {limits: TopicChange{Rate: &store.Rate{Count: 1, Period: time.Minute, Burst: 1}}, rate: 3},
		"the rate of a key":   {limits: TopicChange{KeyRate: &store.Rate{Kind: store.SlidingWindow, Count: 1, Period: time.Minute}}, traits: store.Traits{RateKey: "k"}, rate: 3},
		"a cap":               {limits: TopicChange{Concurrency: new(1)}, concurrency: 3},
		"the cap of a key":    {limits: TopicChange{KeyConcurrency: new(1)}, traits: store.Traits{ConcurrencyKey: "k"}, concurrency: 3},
		"one another":         {traits: store.Traits{OrderingKey: "k"}, order: 3},
		"limits that are off": {limits: TopicChange{Concurrency: new(0)}, traits: store.Traits{ConcurrencyKey: "k"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Config{Topic: store.Topic{Shards: 1}}, func(t *testing.T, s *System) {
				if _, err := s.CreateTopic(t.Context(), "mail", tt.limits); err != nil {
					t.Fatal(err)
				}
				w := subscribeTo(t, s, "mail", 10)
				for range 4 {
					task := after("mail", "", time.Second)
					task.Task.Traits = &tt.traits
					if out := enqueueOne(t, s, task); out.Err != nil {
						t.Fatal(out.Err)
					}
				}
				idle(1500 * time.Millisecond)
				if rate, concurrency, order := waits(t, s); rate != tt.rate || concurrency != tt.concurrency || order != tt.order {
					t.Errorf("%v wait for a rate, %v for a cap, %v for order, want %v, %v and %v", rate, concurrency, order, tt.rate, tt.concurrency, tt.order)
				}
				for range 30 {
					for _, d := range w.take() {
						w.settle(SettleAck, d)
					}
					idle(10 * time.Second)
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
	bubble(t, Config{Topic: store.Topic{Shards: 4}}, func(t *testing.T, s *System) {
		if _, err := s.CreateTopic(t.Context(), "mail", TopicChange{Rate: &store.Rate{Count: 1, Period: time.Hour}}); err != nil {
			t.Fatal(err)
		}
		subscribeTo(t, s, "mail", 10)
		for i := range 8 {
			enqueueOne(t, s, after("mail", fmt.Sprint(i), time.Second))
		}
		idle(1500 * time.Millisecond)
		if rate, _, _ := waits(t, s); rate != 7 {
			t.Errorf("%v wait for the rate, want 7", rate)
		}
		if _, err := s.ConfigureTopic(t.Context(), "mail", TopicChange{Rate: &store.Rate{}, Concurrency: new(3)}); err != nil {
			t.Fatal(err)
		}
		idle(time.Second)
		if rate, concurrency, _ := waits(t, s); rate != 0 || concurrency != 4 {
			t.Errorf("%v wait for a rate and %v for a cap, want none and 4", rate, concurrency)
		}
		if err := s.DeleteTopic(t.Context(), "mail", true); err != nil {
			t.Fatal(err)
		}
		idle(time.Second)
		if n := waitGauges(s); n != 0 {
			t.Errorf("a topic that is gone has %d gauges", n)
		}
	})
}

// TestShardsTakeTheirCountWithThem: what waited in a shard does not count when another
// node owns it.
func TestShardsTakeTheirCountWithThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, Config{Topic: store.Topic{Shards: 1}}, memstore.New())
		w := subscribeTo(t, s, "mail", 10)
		for i := range 4 {
			enqueueOne(t, s, inLine("a", fmt.Sprint(i), time.Second))
		}
		idle(1500 * time.Millisecond)
		if _, _, order := waits(t, s); order != 3 {
			t.Errorf("%v wait, want 3", order)
		}
		for _, d := range w.take() {
			w.settle(SettleRelease, d)
		}
		s.Stop(t.Context())
		if n := waitGauges(s); n != 0 {
			t.Errorf("a node that has stopped has %d gauges", n)
		}
		time.Sleep(5 * time.Second) // the actor library's dead-letter throttle ends by itself
	})
}

// TestFilterTellsWhatTasksWaitFor as a look at one of them does.
func TestFilterTellsWhatTasksWaitFor(t *testing.T) {
	bubble(t, Config{Topic: store.Topic{Shards: 3}}, func(t *testing.T, s *System) {
		if _, err := s.CreateTopic(t.Context(), "mail", TopicChange{KeyRate: &store.Rate{Count: 1, Period: time.Hour, Burst: 1}, KeyConcurrency: new(1)}); err != nil {
			t.Fatal(err)
		}
		subscribeTo(t, s, "mail", 10)
		for i, traits := range []store.Traits{{RateKey: "a"}, {RateKey: "a"}, {ConcurrencyKey: "b"}, {ConcurrencyKey: "b"}, {OrderingKey: "c"}, {OrderingKey: "c"}, {}} {
			task := after("mail", fmt.Sprint(i), time.Second+time.Duration(i)*time.Millisecond)
			task.Task.Traits = &traits
			if traits.OrderingKey != "" {
				task.Task.ID = ""
			}
			enqueueOne(t, s, task)
		}
		idle(2 * time.Second)
		seen := map[WaitingFor]int{}
		for token := ""; ; {
			page, next, err := s.Find(t.Context(), "mail", TaskFilter{DueFrom: 1}, 2, token)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range page {
				one, err := s.Get(t.Context(), "mail", f.ID)
				if err != nil || one.WaitingFor != f.WaitingFor || one.NextToken != f.NextToken {
					t.Errorf("%s waits for %d until %d, and by itself for %d until %d (%v)", f.ID, f.WaitingFor, f.NextToken, one.WaitingFor, one.NextToken, err)
				}
				seen[f.WaitingFor]++
			}
			if token = next; next == "" {
				break
			}
		}
		if seen[WaitsForRate] != 1 || seen[WaitsForConcurrency] != 1 || seen[WaitsForOrder] != 1 {
			t.Errorf("tasks by what they wait for: %v", seen)
		}
	})
}
