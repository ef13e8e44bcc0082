package actors

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// bubble runs a test on a System over an in-memory store, in fake time.
func bubble(t *testing.T, cfg Config, test func(t *testing.T, s *System)) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, cfg, memstore.New())
		defer func() {
			// A test may leave tasks held; their streams do not answer.
			short, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			s.Stop(short)
			time.Sleep(5 * time.Second) // the actor library's dead-letter throttle ends by itself
		}()
		test(t, s)
	})
}

func start(t *testing.T, cfg Config, st store.Store) *System {
	t.Helper()
	s := New(cfg, st, slog.New(slog.DiscardHandler), nil)
	if err := s.Start(t.Context()); err != nil {
		t.Fatalf("start: %v", err)
	}
	return s
}

// stream is a worker's stream as a test sees it.
type stream struct {
	t   *testing.T
	sub *Subscription

	mu       sync.Mutex
	got      []Delivery
	at       []time.Time
	settled  []Settled
	cancels  []CancelAsk
	drained  int
	refusing bool
}

func (o *stream) Deliver(d []Delivery) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.refusing {
		return false
	}
	for range d {
		o.at = append(o.at, time.Now())
	}
	o.got = append(o.got, d...)
	return true
}

func (o *stream) Settled(_ uint64, results []Settled) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.settled = append(o.settled, results...)
}

func (o *stream) Demand(int, int) {}

func (o *stream) NodesChanged() {}

func (o *stream) Cancel(asks []CancelAsk) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cancels = append(o.cancels, asks...)
}

func (o *stream) Drain(time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.drained++
}

// take returns what came since the last take, once the system is quiet.
func (o *stream) take() []Delivery {
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	got := o.got
	o.got = nil
	return got
}

func (o *stream) takeOne() Delivery {
	o.t.Helper()
	got := o.take()
	if len(got) != 1 {
		o.t.Fatalf("got %d deliveries, want 1", len(got))
	}
	return got[0]
}

func (o *stream) takeSettled() []Settled {
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	got := o.settled
	o.settled = nil
	return got
}

func (o *stream) settle(kind SettleKind, d Delivery) {
	o.sub.Settle(1, []Settlement{{Kind: kind, ID: d.Task.ID, Token: d.Token}})
}

func subscribeTo(t *testing.T, s *System, topic string, credit int) *stream {
	t.Helper()
	o := &stream{t: t}
	sub, err := s.Subscribe(t.Context(), SubscribeOptions{Topic: topic, Worker: "w"}, o)
	if err != nil {
		t.Fatalf("subscribe: %v", err)
	}
	o.sub = sub
	if credit > 0 {
		if err := sub.Grant(credit); err != nil {
			t.Fatalf("grant: %v", err)
		}
	}
	synctest.Wait()
	return o
}

func enqueueOne(t *testing.T, s *System, task NewTask) Enqueued {
	t.Helper()
	if task.Task.MaxRetries == 0 {
		task.Task.MaxRetries = -1
	}
	out, err := s.Enqueue(t.Context(), []NewTask{task})
	if err != nil {
		t.Fatalf("enqueue: %v", err)
	}
	return out[0]
}

func after(topic, id string, delay time.Duration) NewTask {
	return NewTask{Topic: topic, Task: store.Task{ID: id, Payload: []byte(id)}, When: When{Delay: delay}}
}

func TestTaskIsDeliveredAtItsMillisecond(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, s *System) {
		w := subscribeTo(t, s, "mail", 10)
		for _, delay := range []time.Duration{time.Millisecond, time.Second, 29 * time.Second, 31 * time.Second, 10 * time.Minute, 49 * time.Hour} {
			in := enqueueOne(t, s, after("mail", delay.String(), delay))
			if in.Err != nil {
				t.Fatal(in.Err)
			}
			time.Sleep(time.Until(in.Due.Time()) - time.Millisecond)
			if early := w.take(); len(early) > 0 {
				t.Fatalf("%v: delivered before due", delay)
			}
			time.Sleep(2 * time.Millisecond)
			d := w.takeOne()
			if string(d.Task.Payload) != delay.String() || d.Task.Attempt != 1 {
				t.Errorf("got %q attempt %d", d.Task.Payload, d.Task.Attempt)
			}
			if late := w.at[len(w.at)-1].Sub(in.Due.Time()); late < 0 || late > 2*time.Millisecond {
				t.Errorf("%v: late by %v", delay, late)
			}
			w.settle(SettleAck, d)
			if r := w.takeSettled(); len(r) != 1 || r[0].Err != nil {
				t.Fatalf("ack: %+v", r)
			}
		}
		if _, err := s.Get(t.Context(), "mail", "1s"); err == nil {
			t.Error("acked task is still there")
		}
	})
}

func TestImmediateTaskIsHeldAsItIsStored(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, s *System) {
		w := subscribeTo(t, s, "mail", 2)
		for i := range 3 {
			enqueueOne(t, s, after("mail", fmt.Sprint(i), 0))
		}
		got := w.take()
		if len(got) != 2 {
			t.Fatalf("got %d deliveries for credit of 2", len(got))
		}
		w.settle(SettleAck, got[0])
		if w.takeSettled(); len(w.take()) != 0 {
			t.Fatal("delivered without credit")
		}
		w.sub.Grant(1)
		if d := w.takeOne(); d.Task.ID != "2" {
			t.Errorf("got %s, want 2", d.Task.ID)
		}
	})
}

func TestMaxInFlightBoundsCredit(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, s *System) {
		o := &stream{t: t}
		o.sub, _ = s.Subscribe(t.Context(), SubscribeOptions{Topic: "mail", MaxInFlight: 3}, o)
		o.sub.Grant(10)
		for i := range 10 {
			enqueueOne(t, s, after("mail", fmt.Sprint(i), 0))
		}
		got := o.take()
		if len(got) != 3 {
			t.Fatalf("in flight %d, want 3", len(got))
		}
		o.sub.Grant(10)
		if more := o.take(); len(more) != 0 {
			t.Fatalf("%d beyond max in flight", len(more))
		}
		o.settle(SettleAck, got[0])
		o.takeOne()
	})
}

func TestHoldExpiresOnTimeAndTaskComesAgain(t *testing.T) {
	bubble(t, Config{Topic: store.Topic{Visibility: 5 * time.Second, MaxRetries: 1,
		Backoff: store.Backoff{Kind: store.BackoffFixed, Base: 2 * time.Second}}}, func(t *testing.T, s *System) {
		w := subscribeTo(t, s, "mail", 10)
		enqueueOne(t, s, after("mail", "a", 0))
		first := w.takeOne()
		time.Sleep(6900 * time.Millisecond)
		if len(w.take()) != 0 {
			t.Fatal("delivered again while the backoff runs")
		}
		time.Sleep(200 * time.Millisecond)
		second := w.takeOne()
		if second.Task.Attempt != 2 {
			t.Errorf("attempt %d, want 2", second.Task.Attempt)
		}
		w.settle(SettleAck, first)
		if r := w.takeSettled(); r[0].Err == nil || r[0].Err.Reason != "HOLD_LOST" {
			t.Errorf("stale ack: %+v", r[0])
		}
		time.Sleep(6 * time.Second)
		f, err := s.Get(t.Context(), "mail", "a")
		if err != nil || f.State != store.StateDead || f.Reason != store.ReasonHoldExpired {
			t.Errorf("after the last attempt: %v %v %v", f.State, f.Reason, err)
		}
	})
}

func TestExtendKeepsTheHold(t *testing.T) {
	bubble(t, Config{Topic: store.Topic{Visibility: 5 * time.Second}}, func(t *testing.T, s *System) {
		w := subscribeTo(t, s, "mail", 10)
		enqueueOne(t, s, after("mail", "a", 0))
		d := w.takeOne()
		for range 5 {
			time.Sleep(4 * time.Second)
			w.settle(SettleExtend, d)
			if r := w.takeSettled(); r[0].Err != nil || r[0].HoldFor < 4900*time.Millisecond {
				t.Fatalf("extend: %+v", r[0])
			}
		}
		w.settle(SettleAck, d)
		if r := w.takeSettled(); r[0].Err != nil {
			t.Fatalf("ack: %v", r[0].Err)
		}
		w.settle(SettleAck, d)
		if r := w.takeSettled(); r[0].Err != nil || !r[0].Already {
			t.Errorf("the same ack again: %+v", r[0])
		}
	})
}

func TestNackFollowsPolicy(t *testing.T) {
	bubble(t, Config{Topic: store.Topic{MaxRetries: 2,
		Backoff: store.Backoff{Kind: store.BackoffQuadratic, Base: time.Second}}}, func(t *testing.T, s *System) {
		w := subscribeTo(t, s, "mail", 10)
		enqueueOne(t, s, after("mail", "a", 0))
		for attempt, wait := range []time.Duration{time.Second, 4 * time.Second} {
			d := w.takeOne()
			w.settle(SettleNack, d)
			if r := w.takeSettled(); r[0].State != store.StateRetrying {
				t.Fatalf("attempt %d: %+v", attempt+1, r[0])
			}
			time.Sleep(wait - 10*time.Millisecond)
			if len(w.take()) != 0 {
				t.Fatalf("attempt %d came early", attempt+2)
			}
			time.Sleep(20 * time.Millisecond)
		}
		last := w.takeOne()
		w.sub.Settle(1, []Settlement{{Kind: SettleNack, ID: "a", Token: last.Token, Error: "boom"}})
		if r := w.takeSettled(); r[0].State != store.StateDead {
			t.Fatalf("last attempt: %+v", r[0])
		}
		dead, _, err := s.ListDead(t.Context(), "mail", DeadFilter{ErrorContains: "boo"}, 0, "")
		if err != nil || len(dead) != 1 || dead[0].Reason != store.ReasonMaxRetries {
			t.Fatalf("dead letters: %+v %v", dead, err)
		}
		if n, _, err := s.RequeueDead(t.Context(), "mail", nil, DeadFilter{}); n != 1 || err != nil {
			t.Fatalf("requeued %d, %v", n, err)
		}
		if d := w.takeOne(); d.Task.Attempt != 1 {
			t.Errorf("requeued with attempt %d", d.Task.Attempt)
		}
	})
}

func TestReleaseSpendsNoAttempt(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, s *System) {
		w := subscribeTo(t, s, "mail", 10)
		enqueueOne(t, s, after("mail", "a", 0))
		w.settle(SettleRelease, w.takeOne())
		if d := w.takeOne(); d.Task.Attempt != 1 {
			t.Errorf("attempt %d after a release", d.Task.Attempt)
		}
	})
}

func TestUnsubscribeGivesBackWhatWasNotSent(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, s *System) {
		w := subscribeTo(t, s, "mail", 10)
		for i := range 5 {
			enqueueOne(t, s, after("mail", fmt.Sprint(i), 0))
		}
		w.sub.Unsubscribe(w.take())
		next := subscribeTo(t, s, "mail", 10)
		got := next.take()
		if len(got) != 5 {
			t.Fatalf("%d tasks after unsubscribing, want 5", len(got))
		}
		for _, d := range got {
			if d.Task.Attempt != 1 {
				t.Errorf("task %s: attempt %d", d.Task.ID, d.Task.Attempt)
			}
		}
	})
}

func TestDeleteAndReschedulePendingTasks(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, s *System) {
		w := subscribeTo(t, s, "mail", 10)
		for _, id := range []string{"gone", "sooner", "later"} {
			enqueueOne(t, s, after("mail", id, 10*time.Second))
		}
		if _, err := s.Delete(t.Context(), "", "gone"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Reschedule(t.Context(), "mail", "sooner", When{Delay: time.Second}, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Reschedule(t.Context(), "", "later", When{Delay: time.Hour}, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1100 * time.Millisecond)
		d := w.takeOne()
		if d.Task.ID != "sooner" {
			t.Errorf("got %s", d.Task.ID)
		}
		_, err := s.Delete(t.Context(), "mail", "sooner")
		if e := err.(*Error); e.Reason != "TASK_RUNNING" {
			t.Errorf("delete of a running task: %v", err)
		}
		w.settle(SettleAck, d)
		time.Sleep(time.Hour - 2*time.Second)
		if got := w.take(); len(got) != 0 {
			t.Fatalf("got %s too early", got[0].Task.ID)
		}
		time.Sleep(2 * time.Second)
		if d := w.takeOne(); d.Task.ID != "later" {
			t.Errorf("got %s", d.Task.ID)
		}
	})
}

func TestPauseHoldsTasksBack(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, s *System) {
		w := subscribeTo(t, s, "mail", 10)
		yes, no := true, false
		if _, err := s.ConfigureTopic(t.Context(), "mail", TopicChange{DeliveryPaused: &yes}); err != nil {
			t.Fatal(err)
		}
		enqueueOne(t, s, after("mail", "a", 0))
		time.Sleep(time.Second)
		if len(w.take()) != 0 {
			t.Fatal("delivered while paused")
		}
		s.ConfigureTopic(t.Context(), "mail", TopicChange{DeliveryPaused: &no, EnqueuePaused: &yes})
		w.takeOne()
		if out := enqueueOne(t, s, after("mail", "b", 0)); out.Err == nil || out.Err.Reason != "ENQUEUE_PAUSED" {
			t.Errorf("enqueue while paused: %+v", out)
		}
	})
}

func TestBacklogBeyondBudgetsComesInOrder(t *testing.T) {
	const n = 3000
	bubble(t, Config{ReadyBudget: 100, WheelBudget: 200, Topic: store.Topic{Shards: 1}}, func(t *testing.T, s *System) {
		var tasks []NewTask
		for i := range n {
			task := after("mail", fmt.Sprintf("t%05d", i), time.Duration(i)*5*time.Millisecond)
			task.Task.MaxRetries = -1
			tasks = append(tasks, task)
		}
		for i := 0; i < n; i += 1000 {
			if _, err := s.Enqueue(t.Context(), tasks[i:i+1000]); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(20 * time.Second)
		w := subscribeTo(t, s, "mail", 50)
		seen := map[string]bool{}
		for len(seen) < n {
			got := w.take()
			if len(got) == 0 {
				t.Fatalf("stuck after %d of %d", len(seen), n)
			}
			for _, d := range got {
				if seen[d.Task.ID] {
					t.Fatalf("%s delivered twice", d.Task.ID)
				}
				seen[d.Task.ID] = true
				w.settle(SettleAck, d)
			}
			w.sub.Grant(len(got))
		}
	})
}

func TestRestartOnTheSameStoreLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New()
		s := start(t, Config{}, st)
		w := subscribeTo(t, s, "mail", 1)
		enqueueOne(t, s, after("mail", "held", 0))
		enqueueOne(t, s, after("mail", "soon", 10*time.Second))
		w.takeOne()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s.Stop(short)

		s = start(t, Config{}, st)
		w = subscribeTo(t, s, "mail", 10)
		time.Sleep(9500 * time.Millisecond)
		if d := w.takeOne(); d.Task.ID != "soon" {
			t.Errorf("got %s", d.Task.ID)
		}
		time.Sleep(25 * time.Second)
		if d := w.takeOne(); d.Task.ID != "held" || d.Task.Attempt != 2 {
			t.Errorf("got %s attempt %d, want held again", d.Task.ID, d.Task.Attempt)
		}
		short, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s.Stop(short)
	})
}

func TestRetrieveWaitsForTheFirstTask(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, s *System) {
		enqueueOne(t, s, after("mail", "a", 3*time.Second))
		began := time.Now()
		got, err := s.Retrieve(t.Context(), SubscribeOptions{Topic: "mail"}, 5, 30*time.Second)
		if err != nil || len(got) != 1 {
			t.Fatalf("got %d, %v", len(got), err)
		}
		if waited := time.Since(began); waited < 3*time.Second || waited > 3100*time.Millisecond {
			t.Errorf("waited %v", waited)
		}
		out, err := s.Settle(t.Context(), "mail", []Settlement{{Kind: SettleAck, ID: "a", Token: got[0].Token}})
		if err != nil || out[0].Err != nil {
			t.Errorf("settle: %v %v", out, err)
		}
		if got, err := s.Retrieve(t.Context(), SubscribeOptions{Topic: "mail"}, 5, time.Second); err != nil || len(got) != 0 {
			t.Errorf("empty topic: %d, %v", len(got), err)
		}
	})
}

func TestEnqueueIsIdempotentByID(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, s *System) {
		first := enqueueOne(t, s, after("mail", "a", time.Hour))
		time.Sleep(time.Second)
		again := enqueueOne(t, s, after("mail", "a", time.Hour))
		if !again.Deduplicated || again.Due != first.Due {
			t.Errorf("same request: %+v, first %+v", again, first)
		}
		other := after("mail", "a", time.Hour)
		other.Task.Payload = []byte("other")
		if out := enqueueOne(t, s, other); out.Err == nil || out.Err.Reason != "ID_CONFLICT" {
			t.Errorf("another request: %+v", out)
		}
	})
}
