package actors

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

func TestBacklogAllowsWhatALookSaw(t *testing.T) {
	var b backlog
	now := time.Unix(100, 0)
	want := func(what string, got, want verdict) {
		t.Helper()
		if got != want {
			t.Fatalf("%s: got %d, want %d", what, got, want)
		}
	}
	want("the first of all", b.take(now), lookFirst)
	b.seen(now, 7, 10, 1)
	for range 3 {
		want("room for three", b.take(now), letIn)
	}
	want("the fourth", b.take(now), turnedAway)
	now = now.Add(backlogPause)
	want("after a pause", b.take(now), lookFirst)
	b.seen(now, 7, 10, 1) // the three are on their way still
	want("what is on its way counts", b.take(now), turnedAway)
	b.leave(3)
	b.seen(now, 9, 10, 1)
	want("the last", b.take(now.Add(backlogGood-1)), letIn)
	b.leave(1)
	b.seen(now, 0, 10, 1)
	want("an old look", b.take(now.Add(backlogGood)), lookFirst)
	b.seen(now, 12, 10, 3)
	want("more than the most", b.take(now), turnedAway)
	b.seen(now, 8, 10, 3)
	want("a share of two", b.take(now), letIn)
	want("a share of two", b.take(now), turnedAway)
}

// lookedAt counts the reads of a topic's numbers.
type lookedAt struct {
	*memstore.Store
	looks atomic.Int64
}

func (l *lookedAt) Stats(ctx context.Context, shards []store.Shard) ([]store.Stats, error) {
	l.looks.Add(1)
	return l.Store.Stats(ctx, shards)
}

// fill enqueues n tasks one by one, due in an hour, and counts what was taken.
func fill(t *testing.T, s *System, topic string, n int) (taken int) {
	t.Helper()
	for range n {
		switch out := enqueueOne(t, s, after(topic, "", time.Hour)); {
		case out.Err == nil:
			taken++
		case out.Err.Kind != Exhausted || out.Err.Reason != "BACKLOG_FULL" || out.Err.RetryAfter == 0:
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
		s := start(t, Config{}, st)
		defer func() {
			s.Stop(t.Context())
			time.Sleep(5 * time.Second)
		}()
		most := 100
		if _, err := s.CreateTopic(t.Context(), "mail", TopicChange{MaxBacklog: &most}); err != nil {
			t.Fatal(err)
		}
		before := st.looks.Load()
		if n := fill(t, s, "mail", 5000); n != most {
			t.Fatalf("%d tasks were taken, of at most %d", n, most)
		}
		if n := st.looks.Load() - before; n > 2 {
			t.Errorf("%d looks for 5,000 enqueues in no time", n)
		}
		batch := make([]NewTask, 300)
		for i := range batch {
			batch[i] = after("other", "", time.Hour)
			if i%3 == 0 {
				batch[i].Topic = "mail"
			}
		}
		out, err := s.Enqueue(t.Context(), batch)
		if err != nil {
			t.Fatal(err)
		}
		for i := range out {
			if full := out[i].Err != nil; full != (i%3 == 0) {
				t.Fatalf("task %d of a batch: %v", i, out[i].Err)
			}
		}
		deleted, err := s.PurgeTopic(t.Context(), "mail")
		if err != nil || deleted != 100 {
			t.Fatalf("purge: %d, %v", deleted, err)
		}
		time.Sleep(backlogPause)
		if n := fill(t, s, "mail", 30); n != 30 {
			t.Errorf("%d tasks were taken of 30, with room for 100", n)
		}
	})
}

// TestBacklogNeverRefusesWhatSettles has a full topic take back what failed.
func TestBacklogNeverRefusesWhatSettles(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, s *System) {
		most := 2
		if _, err := s.CreateTopic(t.Context(), "mail", TopicChange{MaxBacklog: &most}); err != nil {
			t.Fatal(err)
		}
		w := subscribeTo(t, s, "mail", 2)
		for i := range 2 {
			enqueueOne(t, s, after("mail", fmt.Sprint("held-", i), 0))
		}
		held := w.take()
		time.Sleep(time.Second)
		if n := fill(t, s, "mail", 5); n != 2 || len(held) != 2 {
			t.Fatalf("%d tasks were taken while %d are held", n, len(held))
		}
		for _, d := range held {
			w.settle(SettleNack, d)
		}
		for _, r := range w.takeSettled() {
			if r.Err != nil {
				t.Errorf("nack: %v", r.Err)
			}
		}
		status, err := s.DescribeTopic(t.Context(), "mail")
		if waiting := status.Depth.Scheduled + status.Depth.Ready; err != nil || waiting != 4 {
			t.Errorf("%d tasks wait (%v), want the 2 that were let in and the 2 that failed", waiting, err)
		}
	})
}

// TestBacklogCapOfAFleet has three nodes fill a topic at once, as fast as they can and
// then with time for a look now and then.
func TestBacklogCapOfAFleet(t *testing.T) {
	for _, pause := range []time.Duration{0, time.Millisecond, 40 * time.Millisecond} {
		fleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *testFleet) {
			const most = 900
			n := most
			if _, err := f.nodes["a"].sys.CreateTopic(t.Context(), "mail", TopicChange{MaxBacklog: &n}); err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			var taken atomic.Int64
			for _, node := range f.nodes {
				wg.Go(func() {
					for range 200 {
						taken.Add(int64(fill(t, node.sys, "mail", 10)))
						time.Sleep(pause)
					}
				})
			}
			wg.Wait()
			t.Logf("pause %v: %d taken of at most %d", pause, taken.Load(), most)
			for range 20 { // each fills up a part of what is left
				time.Sleep(2 * time.Second)
				for _, node := range f.nodes {
					taken.Add(int64(fill(t, node.sys, "mail", 50)))
				}
			}
			// What the others may add within a second of a look is less than the room.
			if got := taken.Load(); got < most || got > most*5/3 {
				t.Errorf("pause %v: %d tasks were taken, of at most %d", pause, got, most)
			}
		})
	}
}
