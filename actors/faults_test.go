package actors

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// faultyStore fails calls as a test says. A lost reply is a call that took effect.
type faultyStore struct {
	store.Store
	mu     sync.Mutex
	down   bool                     // every call fails with ErrUnavailable
	losing map[string]int           // call -> replies to lose
	broken map[string]int           // call -> replies to give without results, against the contract
	late   map[string]chan struct{} // call -> replies come once it is closed
}

func newFaultyStore() *faultyStore {
	return &faultyStore{Store: memstore.New(), losing: map[string]int{}, broken: map[string]int{}}
}

func (f *faultyStore) set(edit func(*faultyStore)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	edit(f)
}

func (f *faultyStore) before() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down {
		return store.ErrUnavailable
	}
	return nil
}

func (f *faultyStore) after(call string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.losing[call] > 0 {
		f.losing[call]--
		return fmt.Errorf("reply lost: %w", store.ErrUnknown)
	}
	return nil
}

func (f *faultyStore) isBroken(call string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken[call] > 0 {
		f.broken[call]--
		return true
	}
	return false
}

// delay waits for as long as replies to a call are late.
func (f *faultyStore) delay(call string) {
	f.mu.Lock()
	late := f.late[call]
	f.mu.Unlock()
	if late != nil {
		<-late
	}
}

// through runs a call with the faults of its name around it.
func through[R any](f *faultyStore, call string, do func() (store.Stamp, []R, error)) (store.Stamp, []R, error) {
	if err := f.before(); err != nil {
		return store.Stamp{}, nil, err
	}
	stamp, results, err := do()
	f.delay(call)
	if err == nil {
		err = f.after(call)
	}
	if err != nil {
		return store.Stamp{}, nil, err
	}
	if f.isBroken(call) {
		return stamp, results[:0], nil
	}
	return stamp, results, nil
}

func (f *faultyStore) Add(ctx context.Context, s store.Shard, tasks []*store.Task) (store.Stamp, []store.AddResult, error) {
	return through(f, "add", func() (store.Stamp, []store.AddResult, error) { return f.Store.Add(ctx, s, tasks) })
}

func (f *faultyStore) HoldNew(ctx context.Context, s store.Shard, fence store.Fence, tasks []*store.Task, holds []store.Hold) (store.Stamp, []store.AddResult, error) {
	return through(f, "hold_new", func() (store.Stamp, []store.AddResult, error) {
		return f.Store.HoldNew(ctx, s, fence, tasks, holds)
	})
}

func (f *faultyStore) Hold(ctx context.Context, s store.Shard, fence store.Fence, holds []store.Hold) (store.Stamp, []store.HoldResult, error) {
	return through(f, "hold", func() (store.Stamp, []store.HoldResult, error) { return f.Store.Hold(ctx, s, fence, holds) })
}

func (f *faultyStore) Ack(ctx context.Context, s store.Shard, acks []store.Ack, keep time.Duration) (store.Stamp, []store.Status, error) {
	return through(f, "ack", func() (store.Stamp, []store.Status, error) { return f.Store.Ack(ctx, s, acks, keep) })
}

func (f *faultyStore) Nack(ctx context.Context, s store.Shard, nacks []store.Nack) (store.Stamp, []store.NackResult, error) {
	return through(f, "nack", func() (store.Stamp, []store.NackResult, error) { return f.Store.Nack(ctx, s, nacks) })
}

func (f *faultyStore) Remove(ctx context.Context, s store.Shard, ids []string) (store.Stamp, []store.RemoveResult, error) {
	return through(f, "remove", func() (store.Stamp, []store.RemoveResult, error) { return f.Store.Remove(ctx, s, ids) })
}

func (f *faultyStore) Window(ctx context.Context, s store.Shard, w store.WindowQuery) (store.Stamp, []store.Entry, error) {
	return through(f, "window", func() (store.Stamp, []store.Entry, error) { return f.Store.Window(ctx, s, w) })
}

func (f *faultyStore) Claim(ctx context.Context, s store.Shard, session store.Session) (store.Stamp, store.Fence, error) {
	if err := f.before(); err != nil {
		return store.Stamp{}, store.Fence{}, err
	}
	return f.Store.Claim(ctx, s, session)
}

func (f *faultyStore) RenewSession(ctx context.Context, session store.Session) (time.Time, error) {
	if err := f.before(); err != nil {
		return time.Time{}, err
	}
	return f.Store.RenewSession(ctx, session)
}

// faultBubble is bubble over a faulty store.
func faultBubble(t *testing.T, cfg Config, test func(t *testing.T, s *System, f *faultyStore)) {
	synctest.Test(t, func(t *testing.T) {
		f := newFaultyStore()
		s := start(t, cfg, f)
		defer func() {
			short, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			s.Stop(short)
			time.Sleep(5 * time.Second) // the actor library's dead-letter throttle ends by itself
		}()
		test(t, s, f)
	})
}

// TestLostRepliesChangeNothing loses the first reply of every call of a task's
// life: it is delivered once, and every caller hears the truth.
func TestLostRepliesChangeNothing(t *testing.T) {
	for _, delay := range []time.Duration{0, time.Second} {
		faultBubble(t, Config{Topic: store.Topic{Shards: 1}}, func(t *testing.T, s *System, f *faultyStore) {
			w := subscribeTo(t, s, "mail", 10)
			f.set(func(f *faultyStore) {
				f.losing = map[string]int{"add": 2, "hold_new": 1, "hold": 2, "ack": 1, "nack": 1}
			})
			if out := enqueueOne(t, s, after("mail", "a", delay)); out.Err != nil {
				t.Fatalf("enqueue: %v", out.Err)
			}
			time.Sleep(3 * time.Second)
			d := w.takeOne()
			w.settle(SettleNack, d)
			time.Sleep(3 * time.Second)
			if r := w.takeSettled(); len(r) != 1 || r[0].Err != nil || r[0].State != store.StateRetrying {
				t.Fatalf("nack: %+v", r)
			}
			time.Sleep(3 * time.Second)
			d = w.takeOne()
			w.settle(SettleAck, d)
			time.Sleep(time.Second)
			if r := w.takeSettled(); len(r) != 1 || r[0].Err != nil {
				t.Fatalf("ack: %+v", r)
			}
			time.Sleep(time.Minute)
			if more := w.take(); len(more) != 0 {
				t.Errorf("delivered again after the ack: attempt %d", more[0].Task.Attempt)
			}
		})
	}
}

func TestStoreOutageCostsErrorsAndNoTask(t *testing.T) {
	faultBubble(t, Config{}, func(t *testing.T, s *System, f *faultyStore) {
		w := subscribeTo(t, s, "mail", 100)
		for i := range 20 {
			enqueueOne(t, s, after("mail", fmt.Sprint(i), time.Duration(i)*time.Second))
		}
		time.Sleep(5500 * time.Millisecond)
		for _, d := range w.take() {
			w.settle(SettleAck, d)
		}
		synctest.Wait()
		f.set(func(f *faultyStore) { f.down = true })
		if out := enqueueOne(t, s, after("mail", "refused", 0)); out.Err == nil || out.Err.Kind != Unavailable || out.Err.RetryAfter == 0 {
			t.Errorf("enqueue while the store is down: %+v", out)
		}
		time.Sleep(6 * time.Second)
		if err := s.Ready(); err == nil {
			t.Error("ready while the lease is lost")
		}
		f.set(func(f *faultyStore) { f.down = false })
		time.Sleep(3 * time.Second)
		if err := s.Ready(); err != nil {
			t.Errorf("not ready after the store came back: %v", err)
		}
		time.Sleep(6 * time.Second)
		if got := w.take(); len(got) != 14 {
			t.Errorf("%d tasks after the outage, want 14", len(got))
		}
	})
}

// TestPageReadBeforeTheLeaseWasLostIsDropped: what it has would be taken for known
// when the shard is claimed again, and nobody would hand it out.
func TestPageReadBeforeTheLeaseWasLostIsDropped(t *testing.T) {
	faultBubble(t, Config{Horizon: 4 * time.Second, Topic: store.Topic{Shards: 1}}, func(t *testing.T, s *System, f *faultyStore) {
		w := subscribeTo(t, s, "mail", 100)
		enqueueOne(t, s, after("mail", "a", 5*time.Second))
		arrive := make(chan struct{})
		f.set(func(f *faultyStore) { f.late = map[string]chan struct{}{"window": arrive} })
		time.Sleep(2 * time.Second) // a page is on its way, with the task
		f.set(func(f *faultyStore) { f.down, f.late = true, nil })
		time.Sleep(2500 * time.Millisecond)
		if s.Ready() == nil {
			t.Fatal("ready while the lease is lost")
		}
		close(arrive)
		time.Sleep(time.Second) // the task is due meanwhile
		f.set(func(f *faultyStore) { f.down = false })
		time.Sleep(3 * time.Second)
		if got := w.take(); len(got) != 1 {
			t.Errorf("%d tasks after the lease was lost and won again, want 1", len(got))
		}
	})
}

// TestDeleteWhoseAnswerWasLostIsNotRefused loses the answer of the first try, which
// deleted the task: the second one finds none.
func TestDeleteWhoseAnswerWasLostIsNotRefused(t *testing.T) {
	faultBubble(t, Config{}, func(t *testing.T, s *System, f *faultyStore) {
		enqueueOne(t, s, after("mail", "a", time.Minute))
		f.set(func(f *faultyStore) { f.losing["remove"] = 1 })
		_, err := s.Delete(t.Context(), "mail", "a")
		var e *Error
		if !errors.As(err, &e) || e.Kind != Unknown {
			t.Errorf("delete: %v, want that nobody knows", err)
		}
		if _, err = s.Delete(t.Context(), "mail", "a"); !errors.As(err, &e) || e.Kind != NotFound {
			t.Errorf("delete again: %v, want that there is none", err)
		}
	})
}

func TestPanickingShardStartsAnewFromTheStore(t *testing.T) {
	faultBubble(t, Config{Topic: store.Topic{Shards: 1}}, func(t *testing.T, s *System, f *faultyStore) {
		w := subscribeTo(t, s, "mail", 100)
		for i := range 10 {
			enqueueOne(t, s, after("mail", fmt.Sprint(i), 10*time.Second))
		}
		// A store that breaks its contract is a bug, and bugs panic.
		f.set(func(f *faultyStore) { f.broken["ack"] = 1 })
		enqueueOne(t, s, after("mail", "trigger", 0))
		d := w.takeOne()
		f.set(func(f *faultyStore) { f.broken["hold"] = 1 })
		enqueueOne(t, s, after("mail", "late", time.Second))
		w.settle(SettleExtend, d)
		time.Sleep(2 * time.Minute)
		seen := map[string]bool{}
		for _, d := range w.take() {
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
	faultBubble(t, Config{Topic: store.Topic{Shards: 1}}, func(t *testing.T, s *System, f *faultyStore) {
		w := subscribeTo(t, s, "mail", 100)
		enqueueOne(t, s, after("mail", "a", 5*time.Second))
		// The same node name in another life takes the session and the shard.
		other := store.Session{Node: "ddq", Start: store.NewToken(), TTL: time.Minute, Begin: true}
		if _, err := f.RenewSession(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		if _, _, err := f.Claim(t.Context(), store.Shard{Topic: "mail"}, other); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if got := w.take(); len(got) != 0 {
			t.Errorf("a shard claimed elsewhere delivered %d tasks", len(got))
		}
		if s.Ready() == nil {
			t.Error("ready although another process has this node's name")
		}
	})
}
