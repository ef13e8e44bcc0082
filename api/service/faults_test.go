package service_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/lease"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
)

// TestLostRepliesChangeNothing loses the first reply of every call of a task's
// life: it is delivered once, and every caller hears the truth.
func TestLostRepliesChangeNothing(t *testing.T) {
	for _, delay := range []time.Duration{0, time.Second} {
		servicetest.FaultBubble(t, actors.Config{Topic: store.Topic{Shards: 1}}, func(t *testing.T, s *service.Service, f *servicetest.FaultyStore) {
			w := servicetest.Subscribe(t, s, "mail", 10)
			f.Set(func(f *servicetest.FaultyStore) {
				f.Losing = map[string]int{"add": 2, "hold_new": 1, "hold": 2, "ack": 1, "nack": 1}
			})
			if out := servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", delay)); out.Err != nil {
				t.Fatalf("enqueue: %v", out.Err)
			}
			time.Sleep(3 * time.Second)
			d := w.TakeOne()
			w.Settle(subscription.SettleNack, d)
			time.Sleep(3 * time.Second)
			if r := w.TakeSettled(); len(r) != 1 || r[0].Err != nil || r[0].State != store.StateRetrying {
				t.Fatalf("nack: %+v", r)
			}
			time.Sleep(3 * time.Second)
			d = w.TakeOne()
			w.Settle(subscription.SettleAck, d)
			time.Sleep(time.Second)
			if r := w.TakeSettled(); len(r) != 1 || r[0].Err != nil {
				t.Fatalf("ack: %+v", r)
			}
			time.Sleep(time.Minute)
			if more := w.Take(); len(more) != 0 {
				t.Errorf("delivered again after the ack: attempt %d", more[0].Task.Attempt)
			}
		})
	}
}

func TestStoreOutageCostsErrorsAndNoTask(t *testing.T) {
	servicetest.FaultBubble(t, actors.Config{}, func(t *testing.T, s *service.Service, f *servicetest.FaultyStore) {
		w := servicetest.Subscribe(t, s, "mail", 100)
		for i := range 20 {
			servicetest.EnqueueOne(t, s, servicetest.After("mail", fmt.Sprint(i), time.Duration(i)*time.Second))
		}
		time.Sleep(5500 * time.Millisecond)
		for _, d := range w.Take() {
			w.Settle(subscription.SettleAck, d)
		}
		synctest.Wait()
		f.Set(func(f *servicetest.FaultyStore) { f.Down = true })
		if out := servicetest.EnqueueOne(t, s, servicetest.After("mail", "refused", 0)); out.Err == nil || out.Err.Kind != problem.Unavailable || out.Err.RetryAfter == 0 {
			t.Errorf("enqueue while the store is down: %+v", out)
		}
		time.Sleep(6 * time.Second)
		if err := s.Node().Ready(); err == nil {
			t.Error("ready while the lease is lost")
		}
		f.Set(func(f *servicetest.FaultyStore) { f.Down = false })
		time.Sleep(3 * time.Second)
		if err := s.Node().Ready(); err != nil {
			t.Errorf("not ready after the store came back: %v", err)
		}
		time.Sleep(6 * time.Second)
		if got := w.Take(); len(got) != 14 {
			t.Errorf("%d tasks after the outage, want 14", len(got))
		}
	})
}

// TestPageReadBeforeTheLeaseWasLostIsDropped: what it has would be taken for known
// when the shard is claimed again, and nobody would hand it out.
func TestPageReadBeforeTheLeaseWasLostIsDropped(t *testing.T) {
	servicetest.FaultBubble(t, actors.Config{Horizon: 4 * time.Second, Topic: store.Topic{Shards: 1}}, func(t *testing.T, s *service.Service, f *servicetest.FaultyStore) {
		w := servicetest.Subscribe(t, s, "mail", 100)
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", 5*time.Second))
		arrive := make(chan struct{})
		f.Set(func(f *servicetest.FaultyStore) { f.Late = map[string]chan struct{}{"window": arrive} })
		time.Sleep(2 * time.Second) // a page is on its way, with the task
		f.Set(func(f *servicetest.FaultyStore) { f.Down, f.Late = true, nil })
		time.Sleep(2500 * time.Millisecond)
		if s.Node().Ready() == nil {
			t.Fatal("ready while the lease is lost")
		}
		close(arrive)
		time.Sleep(time.Second) // the task is due meanwhile
		f.Set(func(f *servicetest.FaultyStore) { f.Down = false })
		time.Sleep(3 * time.Second)
		if got := w.Take(); len(got) != 1 {
			t.Errorf("%d tasks after the lease was lost and won again, want 1", len(got))
		}
	})
}

// TestDeleteWhoseAnswerWasLostIsNotRefused loses the answer of the first try, which
// deleted the task: the second one finds none.
func TestDeleteWhoseAnswerWasLostIsNotRefused(t *testing.T) {
	servicetest.FaultBubble(t, actors.Config{}, func(t *testing.T, s *service.Service, f *servicetest.FaultyStore) {
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", time.Minute))
		f.Set(func(f *servicetest.FaultyStore) { f.Losing["remove"] = 1 })
		_, err := s.Tasks.Delete(t.Context(), "mail", "a")
		var e *problem.Error
		if !errors.As(err, &e) || e.Kind != problem.Unknown {
			t.Errorf("delete: %v, want that nobody knows", err)
		}
		if _, err = s.Tasks.Delete(t.Context(), "mail", "a"); !errors.As(err, &e) || e.Kind != problem.NotFound {
			t.Errorf("delete again: %v, want that there is none", err)
		}
	})
}

func TestPanickingShardStartsAnewFromTheStore(t *testing.T) {
	servicetest.FaultBubble(t, actors.Config{Topic: store.Topic{Shards: 1}}, func(t *testing.T, s *service.Service, f *servicetest.FaultyStore) {
		w := servicetest.Subscribe(t, s, "mail", 100)
		for i := range 10 {
			servicetest.EnqueueOne(t, s, servicetest.After("mail", fmt.Sprint(i), 10*time.Second))
		}
		// A store that breaks its contract is a bug, and bugs panic.
		f.Set(func(f *servicetest.FaultyStore) { f.Broken["ack"] = 1 })
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "trigger", 0))
		d := w.TakeOne()
		f.Set(func(f *servicetest.FaultyStore) { f.Broken["hold"] = 1 })
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "late", time.Second))
		w.Settle(subscription.SettleExtend, d)
		time.Sleep(2 * time.Minute)
		seen := map[string]bool{}
		for _, d := range w.Take() {
			seen[d.Task.ID] = true
		}
		for i := range 10 {
			if !seen[fmt.Sprint(i)] {
				t.Errorf("task %d lost with the panicking shard", i)
			}
		}
		if !seen["late"] {
			t.Error("the task of the panic itself is lost")
		}
	})
}

func TestAnotherClaimStopsTheShard(t *testing.T) {
	servicetest.FaultBubble(t, actors.Config{Topic: store.Topic{Shards: 1}}, func(t *testing.T, s *service.Service, f *servicetest.FaultyStore) {
		w := servicetest.Subscribe(t, s, "mail", 100)
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", 5*time.Second))
		// The same node name in another life takes the session and the shard.
		other := store.Session{Node: "ddq", Start: store.NewToken(), TTL: time.Hour, Begin: true}
		if _, err := f.RenewSession(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		if _, _, err := f.Claim(t.Context(), store.Shard{Topic: "mail"}, other); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if got := w.Take(); len(got) != 0 {
			t.Errorf("a shard claimed elsewhere delivered %d tasks", len(got))
		}
		if s.Node().Ready() == nil {
			t.Error("ready although another process has this node's name")
		}
		if err := s.Node().Failed(); err != nil {
			t.Errorf("failed while the other process may end: %v", err)
		}
		time.Sleep(lease.RivalPatience)
		if err := s.Node().Failed(); !errors.Is(err, store.ErrSessionLost) {
			t.Errorf("Failed = %v, want %v: only another start helps", err, store.ErrSessionLost)
		}
	})
}

// A store that is away comes back; one that gave its directory up does not.
func TestNodeFailsWithItsStoreOnly(t *testing.T) {
	servicetest.FaultBubble(t, actors.Config{}, func(t *testing.T, s *service.Service, f *servicetest.FaultyStore) {
		if err := s.Node().Failed(); err != nil {
			t.Errorf("healthy: %v", err)
		}
		f.Set(func(f *servicetest.FaultyStore) { f.Down = true })
		time.Sleep(2 * lease.RivalPatience)
		if err := s.Node().Failed(); err != nil || s.Node().Ready() == nil {
			t.Errorf("Failed = %v, Ready = %v while the store is away; want only the latter", err, s.Node().Ready())
		}
		broken := errors.New("disk broken")
		f.Set(func(f *servicetest.FaultyStore) { f.Broke = broken })
		if err := s.Node().Failed(); !errors.Is(err, broken) {
			t.Errorf("Failed = %v, want %v", err, broken)
		}
	})
}
