package service_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// farthest is how far ahead TestTaskIsDeliveredAtItsMillisecond enqueues; `make long` looks
// farther.
var farthest = flag.Duration("service.farthest", 5*time.Hour, "how far ahead TestTaskIsDeliveredAtItsMillisecond enqueues")

func TestTaskIsDeliveredAtItsMillisecond(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 10)
		for _, delay := range []time.Duration{time.Millisecond, time.Second, 29 * time.Second, 31 * time.Second, 10 * time.Minute, *farthest} {
			in := servicetest.EnqueueOne(t, s, servicetest.After("mail", delay.String(), delay))
			if in.Err != nil {
				t.Fatal(in.Err)
			}
			time.Sleep(time.Until(in.Due.Time()) - time.Millisecond)
			if early := w.Take(); len(early) > 0 {
				t.Fatalf("%v: delivered before due", delay)
			}
			time.Sleep(2 * time.Millisecond)
			d := w.TakeOne()
			if string(d.Task.Payload) != delay.String() || d.Task.Attempt != 1 {
				t.Errorf("got %q attempt %d", d.Task.Payload, d.Task.Attempt)
			}
			if late := w.At[len(w.At)-1].Sub(in.Due.Time()); late < 0 || late > 2*time.Millisecond {
				t.Errorf("%v: late by %v", delay, late)
			}
			w.Settle(subscription.SettleAck, d)
			if r := w.TakeSettled(); len(r) != 1 || r[0].Err != nil {
				t.Fatalf("ack: %+v", r)
			}
		}
		if _, err := s.Tasks.Get(t.Context(), "mail", "1s"); err == nil {
			t.Error("acked task is still there")
		}
	})
}

func TestImmediateTaskIsHeldAsItIsStored(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 2)
		for i := range 3 {
			servicetest.EnqueueOne(t, s, servicetest.After("mail", fmt.Sprint(i), 0))
		}
		got := w.Take()
		if len(got) != 2 {
			t.Fatalf("got %d deliveries for credit of 2", len(got))
		}
		w.Settle(subscription.SettleAck, got[0])
		if w.TakeSettled(); len(w.Take()) != 0 {
			t.Fatal("delivered without credit")
		}
		w.Sub.Grant(1)
		if d := w.TakeOne(); d.Task.ID != "2" {
			t.Errorf("got %s, want 2", d.Task.ID)
		}
	})
}

func TestMaxInFlightBoundsCredit(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		o := &servicetest.Stream{T: t}
		o.Sub, _ = s.Delivery.Subscribe(t.Context(), subscription.Options{Topic: "mail", MaxInFlight: 3}, o)
		o.Sub.Grant(10)
		for i := range 10 {
			servicetest.EnqueueOne(t, s, servicetest.After("mail", fmt.Sprint(i), 0))
		}
		got := o.Take()
		if len(got) != 3 {
			t.Fatalf("in flight %d, want 3", len(got))
		}
		o.Sub.Grant(10)
		if more := o.Take(); len(more) != 0 {
			t.Fatalf("%d beyond max in flight", len(more))
		}
		o.Settle(subscription.SettleAck, got[0])
		o.TakeOne()
	})
}

func TestHoldExpiresOnTimeAndTaskComesAgain(t *testing.T) {
	servicetest.Bubble(t, actors.Config{Topic: store.Topic{Visibility: 5 * time.Second, MaxRetries: 1,
		Backoff: store.Backoff{Kind: store.BackoffFixed, Base: 2 * time.Second}}}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 10)
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", 0))
		first := w.TakeOne()
		time.Sleep(6900 * time.Millisecond)
		if len(w.Take()) != 0 {
			t.Fatal("delivered again while the backoff runs")
		}
		time.Sleep(200 * time.Millisecond)
		second := w.TakeOne()
		if second.Task.Attempt != 2 {
			t.Errorf("attempt %d, want 2", second.Task.Attempt)
		}
		w.Settle(subscription.SettleAck, first)
		if r := w.TakeSettled(); r[0].Err == nil || r[0].Err.Reason != "HOLD_LOST" {
			t.Errorf("stale ack: %+v", r[0])
		}
		time.Sleep(6 * time.Second)
		f, err := s.Tasks.Get(t.Context(), "mail", "a")
		if err != nil || f.State != store.StateDead || f.Reason != store.ReasonHoldExpired {
			t.Errorf("after the last attempt: %v %v %v", f.State, f.Reason, err)
		}
	})
}

func TestExtendKeepsTheHold(t *testing.T) {
	servicetest.Bubble(t, actors.Config{Topic: store.Topic{Visibility: 5 * time.Second}}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 10)
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", 0))
		d := w.TakeOne()
		for range 5 {
			time.Sleep(4 * time.Second)
			w.Settle(subscription.SettleExtend, d)
			if r := w.TakeSettled(); r[0].Err != nil || r[0].HoldFor < 4900*time.Millisecond {
				t.Fatalf("extend: %+v", r[0])
			}
		}
		w.Settle(subscription.SettleAck, d)
		if r := w.TakeSettled(); r[0].Err != nil {
			t.Fatalf("ack: %v", r[0].Err)
		}
		w.Settle(subscription.SettleAck, d)
		if r := w.TakeSettled(); r[0].Err != nil || !r[0].Already {
			t.Errorf("the same ack again: %+v", r[0])
		}
	})
}

func TestNackFollowsPolicy(t *testing.T) {
	servicetest.Bubble(t, actors.Config{Topic: store.Topic{MaxRetries: 2,
		Backoff: store.Backoff{Kind: store.BackoffQuadratic, Base: time.Second}}}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 10)
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", 0))
		for attempt, wait := range []time.Duration{time.Second, 4 * time.Second} {
			d := w.TakeOne()
			w.Settle(subscription.SettleNack, d)
			if r := w.TakeSettled(); r[0].State != store.StateRetrying {
				t.Fatalf("attempt %d: %+v", attempt+1, r[0])
			}
			time.Sleep(wait - 10*time.Millisecond)
			if len(w.Take()) != 0 {
				t.Fatalf("attempt %d came early", attempt+2)
			}
			time.Sleep(20 * time.Millisecond)
		}
		last := w.TakeOne()
		w.Sub.Settle(1, []subscription.Settlement{{Kind: subscription.SettleNack, ID: "a", Token: last.Token, Error: "boom"}})
		if r := w.TakeSettled(); r[0].State != store.StateDead {
			t.Fatalf("last attempt: %+v", r[0])
		}
		dead, _, err := s.DeadLetters.List(t.Context(), "mail", service.DeadFilter{ErrorContains: "boo"}, 0, "")
		if err != nil || len(dead) != 1 || dead[0].Reason != store.ReasonMaxRetries {
			t.Fatalf("dead letters: %+v %v", dead, err)
		}
		if done, err := s.DeadLetters.Requeue(t.Context(), "mail", nil, service.DeadFilter{}, service.Pace{}); done.Count != 1 || err != nil {
			t.Fatalf("requeued %+v, %v", done, err)
		}
		if d := w.TakeOne(); d.Task.Attempt != 1 {
			t.Errorf("requeued with attempt %d", d.Task.Attempt)
		}
	})
}

func TestReleaseSpendsNoAttempt(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 10)
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", 0))
		w.Settle(subscription.SettleRelease, w.TakeOne())
		if d := w.TakeOne(); d.Task.Attempt != 1 {
			t.Errorf("attempt %d after a release", d.Task.Attempt)
		}
	})
}

func TestUnsubscribeGivesBackWhatWasNotSent(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 10)
		for i := range 5 {
			servicetest.EnqueueOne(t, s, servicetest.After("mail", fmt.Sprint(i), 0))
		}
		w.Sub.Unsubscribe(w.Take())
		next := servicetest.Subscribe(t, s, "mail", 10)
		got := next.Take()
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
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 10)
		for _, id := range []string{"gone", "sooner", "later"} {
			servicetest.EnqueueOne(t, s, servicetest.After("mail", id, 10*time.Second))
		}
		if _, err := s.Tasks.Delete(t.Context(), "", "gone"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Tasks.Reschedule(t.Context(), "mail", "sooner", service.When{Delay: time.Second}, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Tasks.Reschedule(t.Context(), "", "later", service.When{Delay: time.Hour}, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1100 * time.Millisecond)
		d := w.TakeOne()
		if d.Task.ID != "sooner" {
			t.Errorf("got %s", d.Task.ID)
		}
		_, err := s.Tasks.Delete(t.Context(), "mail", "sooner")
		if e := err.(*problem.Error); e.Reason != "TASK_RUNNING" {
			t.Errorf("delete of a running task: %v", err)
		}
		w.Settle(subscription.SettleAck, d)
		time.Sleep(time.Hour - 2*time.Second)
		if got := w.Take(); len(got) != 0 {
			t.Fatalf("got %s too early", got[0].Task.ID)
		}
		time.Sleep(2 * time.Second)
		if d := w.TakeOne(); d.Task.ID != "later" {
			t.Errorf("got %s", d.Task.ID)
		}
	})
}

func TestPauseHoldsTasksBack(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 10)
		yes, no := true, false
		if _, err := s.Topics.Configure(t.Context(), "mail", service.TopicChange{DeliveryPaused: &yes}); err != nil {
			t.Fatal(err)
		}
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", 0))
		time.Sleep(time.Second)
		if len(w.Take()) != 0 {
			t.Fatal("delivered while paused")
		}
		s.Topics.Configure(t.Context(), "mail", service.TopicChange{DeliveryPaused: &no, EnqueuePaused: &yes})
		w.TakeOne()
		if out := servicetest.EnqueueOne(t, s, servicetest.After("mail", "b", 0)); out.Err == nil || out.Err.Reason != "ENQUEUE_PAUSED" {
			t.Errorf("enqueue while paused: %+v", out)
		}
	})
}

func TestBacklogBeyondBudgetsComesInOrder(t *testing.T) {
	const n = 3000
	servicetest.Bubble(t, actors.Config{ReadyBudget: 100, WheelBudget: 200, Topic: store.Topic{Shards: 1}}, func(t *testing.T, s *service.Service) {
		var tasks []service.NewTask
		for i := range n {
			task := servicetest.After("mail", fmt.Sprintf("t%05d", i), time.Duration(i)*5*time.Millisecond)
			task.Task.MaxRetries = -1
			tasks = append(tasks, task)
		}
		for i := 0; i < n; i += 1000 {
			if _, err := s.Tasks.Enqueue(t.Context(), tasks[i:i+1000]); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(20 * time.Second)
		w := servicetest.Subscribe(t, s, "mail", 50)
		seen := map[string]bool{}
		for len(seen) < n {
			got := w.Take()
			if len(got) == 0 {
				t.Fatalf("stuck after %d of %d", len(seen), n)
			}
			for _, d := range got {
				if seen[d.Task.ID] {
					t.Fatalf("%s delivered twice", d.Task.ID)
				}
				seen[d.Task.ID] = true
				w.Settle(subscription.SettleAck, d)
			}
			w.Sub.Grant(len(got))
		}
	})
}

// One call of the store holds a few of them at most.
func TestLargeTasksThatAreDueTogetherAreDeliveredAtOnce(t *testing.T) {
	servicetest.Bubble(t, actors.Config{Topic: store.Topic{Shards: 1}}, func(t *testing.T, s *service.Service) {
		for i := range 16 {
			large := servicetest.After("mail", fmt.Sprint("t", i), time.Second)
			large.Task.Payload = make([]byte, 1<<20)
			servicetest.EnqueueOne(t, s, large)
		}
		o := servicetest.Subscribe(t, s, "mail", 16)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := o.Take(); len(got) != 16 {
			t.Errorf("got %d of 16 tasks within a second", len(got))
		}
	})
}

func TestRestartOnTheSameStoreLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New()
		s := servicetest.Start(t, actors.Config{}, st)
		w := servicetest.Subscribe(t, s, "mail", 1)
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "held", 0))
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "soon", 10*time.Second))
		w.TakeOne()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s.Node().Stop(short)

		s = servicetest.Start(t, actors.Config{}, st)
		w = servicetest.Subscribe(t, s, "mail", 10)
		time.Sleep(9500 * time.Millisecond)
		if d := w.TakeOne(); d.Task.ID != "soon" {
			t.Errorf("got %s", d.Task.ID)
		}
		time.Sleep(25 * time.Second)
		if d := w.TakeOne(); d.Task.ID != "held" || d.Task.Attempt != 2 {
			t.Errorf("got %s attempt %d, want held again", d.Task.ID, d.Task.Attempt)
		}
		short, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s.Node().Stop(short)
	})
}

func TestRetrieveWaitsForTheFirstTask(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", 3*time.Second))
		began := time.Now()
		got, err := s.Delivery.Retrieve(t.Context(), subscription.Options{Topic: "mail"}, 5, 30*time.Second)
		if err != nil || len(got) != 1 {
			t.Fatalf("got %d, %v", len(got), err)
		}
		if waited := time.Since(began); waited < 3*time.Second || waited > 3100*time.Millisecond {
			t.Errorf("waited %v", waited)
		}
		out, err := s.Delivery.Settle(t.Context(), "mail", []subscription.Settlement{{Kind: subscription.SettleAck, ID: "a", Token: got[0].Token}})
		if err != nil || out[0].Err != nil {
			t.Errorf("settle: %v %v", out, err)
		}
		if got, err := s.Delivery.Retrieve(t.Context(), subscription.Options{Topic: "mail"}, 5, time.Second); err != nil || len(got) != 0 {
			t.Errorf("empty topic: %d, %v", len(got), err)
		}
	})
}

// A retrieve of more than a worker may have is refused for what it is, and leaves nothing behind.
func TestRetrieveOfTooManyLeavesNoSubscription(t *testing.T) {
	servicetest.Bubble(t, actors.Config{Limits: actors.Limits{MaxInFlight: 100}}, func(t *testing.T, s *service.Service) {
		for n, field := range map[int]string{150: "max_tasks", 0: "max_tasks", 100: ""} {
			_, err := s.Delivery.Retrieve(t.Context(), subscription.Options{Topic: "mail"}, n, 0)
			var e *problem.Error
			if errors.As(err, &e); (err != nil) != (field != "") || e != nil && e.Field != field {
				t.Errorf("%d: got %v", n, err)
			}
		}
		if left, err := s.Node().Peer().Workers(t.Context(), fleet.WorkersQuery{Most: 10}); err != nil || len(left) != 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
}

func TestEnqueueIsIdempotentByID(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		first := servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", time.Hour))
		time.Sleep(time.Second)
		again := servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", time.Hour))
		if !again.Deduplicated || again.Due != first.Due {
			t.Errorf("same request: %+v, first %+v", again, first)
		}
		other := servicetest.After("mail", "a", time.Hour)
		other.Task.Payload = []byte("other")
		if out := servicetest.EnqueueOne(t, s, other); out.Err == nil || out.Err.Reason != "ID_CONFLICT" {
			t.Errorf("another request: %+v", out)
		}
	})
}
