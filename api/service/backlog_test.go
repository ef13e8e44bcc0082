package service_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/intake"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// Operators raise a cap because it was hit a moment ago.
func TestChangedBacklogCapCountsAtOnce(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		if _, err := s.Topics.Create(t.Context(), "mail", service.TopicChange{MaxBacklog: new(2)}); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct{ most, taken int }{{2, 2}, {3, 1}, {3, 0}, {5, 2}, {4, 0}, {6, 1}} {
			if _, err := s.Topics.Configure(t.Context(), "mail", service.TopicChange{MaxBacklog: new(step.most)}); err != nil {
				t.Fatal(err)
			}
			if taken := fill(t, s, "mail", step.taken+1); taken != step.taken {
				t.Errorf("with a cap of %d, %d more were taken, want %d", step.most, taken, step.taken)
			}
		}
	})
}

// lookedAt counts the looks at the backlog, which must not be walks over the tasks that are due.
type lookedAt struct {
	*memstore.Store
	looks atomic.Int64
}

func (l *lookedAt) Counts(ctx context.Context, shards []store.Shard) ([]store.Stats, error) {
	l.looks.Add(1)
	return l.Store.Counts(ctx, shards)
}

// fill enqueues n tasks one by one, due in an hour, and counts what was taken.
func fill(t *testing.T, s *service.Service, topic string, n int) (taken int) {
	t.Helper()
	for range n {
		switch out := servicetest.EnqueueOne(t, s, servicetest.After(topic, "", time.Hour)); {
		case out.Err == nil:
			taken++
		case out.Err.Kind != problem.Exhausted || out.Err.Reason != "BACKLOG_FULL" || out.Err.RetryAfter == 0:
			t.Fatalf("refused with %+v", out.Err)
		}
	}
	return taken
}

// Backpressure on a topic's depth is what users of other queues build by hand, with a
// read of the length in front of each enqueue.
func TestBacklogCapIsExactOnOneNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &lookedAt{Store: memstore.New()}
		s := servicetest.Start(t, actors.Config{}, st)
		defer func() {
			s.Node().Stop(t.Context())
			time.Sleep(5 * time.Second)
		}()
		most := 100
		if _, err := s.Topics.Create(t.Context(), "mail", service.TopicChange{MaxBacklog: &most}); err != nil {
			t.Fatal(err)
		}
		before := st.looks.Load()
		if n := fill(t, s, "mail", 5000); n != most {
			t.Fatalf("%d tasks were taken, of at most %d", n, most)
		}
		if n := st.looks.Load() - before; n < 1 || n > 2 {
			t.Errorf("%d looks for 5,000 enqueues in no time", n)
		}
		batch := make([]service.NewTask, 300)
		for i := range batch {
			batch[i] = servicetest.After("other", "", time.Hour)
			if i%3 == 0 {
				batch[i].Topic = "mail"
			}
		}
		out, err := s.Tasks.Enqueue(t.Context(), batch)
		if err != nil {
			t.Fatal(err)
		}
		for i := range out {
			if full := out[i].Err != nil; full != (i%3 == 0) {
				t.Fatalf("task %d of a batch: %v", i, out[i].Err)
			}
		}
		purged, err := s.Topics.Purge(t.Context(), "mail")
		if err != nil || purged.Deleted != 100 {
			t.Fatalf("purge: %+v, %v", purged, err)
		}
		time.Sleep(intake.Pause)
		if n := fill(t, s, "mail", 30); n != 30 {
			t.Errorf("%d tasks were taken of 30, with room for 100", n)
		}
	})
}

// TestBacklogNeverRefusesWhatSettles has a full topic take back what failed.
func TestBacklogNeverRefusesWhatSettles(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		most := 2
		if _, err := s.Topics.Create(t.Context(), "mail", service.TopicChange{MaxBacklog: &most}); err != nil {
			t.Fatal(err)
		}
		w := servicetest.Subscribe(t, s, "mail", 2)
		for i := range 2 {
			servicetest.EnqueueOne(t, s, servicetest.After("mail", fmt.Sprint("held-", i), 0))
		}
		held := w.Take()
		time.Sleep(time.Second)
		if n := fill(t, s, "mail", 5); n != 2 || len(held) != 2 {
			t.Fatalf("%d tasks were taken while %d are held", n, len(held))
		}
		for _, d := range held {
			w.Settle(subscription.SettleNack, d)
		}
		for _, r := range w.TakeSettled() {
			if r.Err != nil {
				t.Errorf("nack: %v", r.Err)
			}
		}
		status, err := s.Topics.Describe(t.Context(), "mail")
		if waiting := status.Depth.Scheduled + status.Depth.Ready; err != nil || waiting != 4 {
			t.Errorf("%d tasks wait (%v), want the 2 that were let in and the 2 that failed", waiting, err)
		}
	})
}

// TestBacklogCapOfAFleet has three nodes fill a topic at once, as fast as they can and
// then with time for a look now and then.
func TestBacklogCapOfAFleet(t *testing.T) {
	for _, pause := range []time.Duration{0, time.Millisecond, 40 * time.Millisecond} {
		servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
			const most = 900
			n := most
			if _, err := f.Nodes["a"].Sys.Topics.Create(t.Context(), "mail", service.TopicChange{MaxBacklog: &n}); err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			var taken atomic.Int64
			for _, node := range f.Nodes {
				wg.Go(func() {
					for range 200 {
						taken.Add(int64(fill(t, node.Sys, "mail", 10)))
						time.Sleep(pause)
					}
				})
			}
			wg.Wait()
			t.Logf("pause %v: %d taken of at most %d", pause, taken.Load(), most)
			for range 20 { // each fills up a part of what is left
				time.Sleep(2 * time.Second)
				for _, node := range f.Nodes {
					taken.Add(int64(fill(t, node.Sys, "mail", 50)))
				}
			}
			// What the others may add within a second of a look is less than the room.
			if got := taken.Load(); got < most || got > most*5/3 {
				t.Errorf("pause %v: %d tasks were taken, of at most %d", pause, got, most)
			}
		})
	}
}
