package service_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
)

// cancelled is the answer to a call of Cancel.
type cancelled struct {
	service.Cancelled
	err  error
	took time.Duration
}

func cancelTask(t *testing.T, s *service.Service, id string, wait time.Duration, orDelete bool) chan cancelled {
	done := make(chan cancelled, 1)
	go func() {
		begun := time.Now()
		out, err := s.Tasks.Cancel(t.Context(), t.Context(), "mail", id, wait, orDelete)
		done <- cancelled{out, err, time.Since(begun)}
	}()
	synctest.Wait()
	return done
}

// TestCancelIsAnsweredWhenNobodyWaits ends the wait for the worker, as a node does that goes
// away: the task is asked to end all the same, and the answer says so.
func TestCancelIsAnsweredWhenNobodyWaits(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 10)
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", 0))
		servicetest.Idle(time.Second)
		held := w.Take()
		waiting, end := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, end)
		out, err := s.Tasks.Cancel(t.Context(), waiting, "mail", "a", time.Minute, false)
		if err != nil || out.Outcome != service.CancelRequested || out.State != store.StateRunning {
			t.Errorf("the cancel is %+v, %v", out, err)
		}
		if len(held) != 1 || len(w.TakeCancels()) != 1 {
			t.Errorf("the worker of %v was not told", held)
		}
		ctx, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		if _, err := s.Tasks.Cancel(ctx, ctx, "mail", "a", time.Minute, false); problem.FromStore(err).Kind != problem.Deadline {
			t.Errorf("a call whose caller is gone is answered with %v", err)
		}
	})
}

// contribsys/faktory_worker_go#34 and jbielick/faktory_worker_node#409 ask for a way to
// stop a busy job.
func TestCancelReachesTheWorker(t *testing.T) {
	servicetest.Bubble(t, keeping(time.Hour), func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 10)
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", 0))
		d := w.TakeOne()
		if got := <-cancelTask(t, s, "a", 0, false); got.err != nil || got.Outcome != service.CancelRequested || got.State != store.StateRunning {
			t.Fatalf("cancel: %+v", got)
		}
		asks := w.TakeCancels()
		if len(asks) != 1 || asks[0].ID != "a" || string(asks[0].Token) != string(d.Token) {
			t.Fatalf("the worker was told %v", asks)
		}
		if r := w.SettleWith(subscription.Settlement{Kind: subscription.SettleExtend}, d); !r.Cancelled {
			t.Error("the extend did not tell")
		}
		done := cancelTask(t, s, "a", time.Minute, true)
		if len(done) > 0 {
			t.Fatal("did not wait")
		}
		w.SettleWith(subscription.Settlement{Kind: subscription.SettleNack, Error: "stopped"}, d)
		if got := <-done; got.err != nil || got.Outcome != service.CancelConfirmed || got.State != store.StateDead || got.took > 0 {
			t.Errorf("cancel: %+v", got)
		}
		time.Sleep(time.Hour)
		if again := w.Take(); len(again) > 0 {
			t.Errorf("tried again: %v", again)
		}
		found, err := s.Tasks.Get(t.Context(), "mail", "a")
		if err != nil || found.Reason != store.ReasonCancelled || found.LastError != "stopped" || found.Attempts[0].Outcome != store.OutcomeCancelled {
			t.Errorf("found %+v, %v", found, err)
		}
	})
}

func TestCancelMayBeTooLate(t *testing.T) {
	for name, retention := range map[string]time.Duration{"kept": time.Hour, "gone": 0} {
		t.Run(name, func(t *testing.T) {
			servicetest.Bubble(t, keeping(retention), func(t *testing.T, s *service.Service) {
				w := servicetest.Subscribe(t, s, "mail", 10)
				servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", 0))
				d := w.TakeOne()
				if got := <-cancelTask(t, s, "a", time.Second, false); got.Outcome != service.CancelRequested || got.took != time.Second {
					t.Fatalf("cancel: %+v", got)
				}
				done := cancelTask(t, s, "a", time.Minute, false)
				w.SettleWith(subscription.Settlement{Kind: subscription.SettleAck}, d)
				if got := <-done; got.err != nil || got.Outcome != service.CancelTooLate {
					t.Errorf("cancel: %+v", got)
				}
				got := <-cancelTask(t, s, "a", time.Minute, false)
				if retention > 0 && (got.Outcome != service.CancelTooLate || got.State != store.StateDone) || retention == 0 && servicetest.Reason(got.err) != "NO_TASK" {
					t.Errorf("cancel of a done task: %+v", got)
				}
			})
		})
	}
}

func TestCancelOfWhatDoesNotRun(t *testing.T) {
	servicetest.Bubble(t, keeping(time.Hour), func(t *testing.T, s *service.Service) {
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", time.Hour))
		got := <-cancelTask(t, s, "a", 0, false)
		if servicetest.Reason(got.err) != "TASK_NOT_RUNNING" || problem.FromStore(got.err).State != store.StateScheduled {
			t.Errorf("cancel of a pending task: %+v", got)
		}
		if got := <-cancelTask(t, s, "a", 0, true); got.err != nil || got.Outcome != service.CancelDeleted {
			t.Errorf("cancel or delete: %+v", got)
		}
		for _, c := range []struct {
			id     string
			wait   time.Duration
			reason string
		}{{"a", 0, "NO_TASK"}, {"", 0, "BAD_ID"}, {"a", -1, "OUT_OF_RANGE_FIELD"}, {"a", time.Hour, "OUT_OF_RANGE_FIELD"}} {
			if got := <-cancelTask(t, s, c.id, c.wait, true); servicetest.Reason(got.err) != c.reason {
				t.Errorf("%+v: %v", c, got.err)
			}
		}
	})
}

// The call is made at one node, the shard is owned by another, the worker is at a third.
func TestCancelReachesTheWorkerAtAnotherNode(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		a, b, c := f.Nodes["a"], f.Nodes["b"], f.Nodes["c"]
		w := f.Work(b, "mail", 100)
		w.Enqueue(a, "mail", "t", 30, 100*time.Millisecond)
		time.Sleep(200 * time.Millisecond)
		held := map[string]string{}
		for _, d := range w.Take() {
			held[d.Task.ID] = string(d.Token)
		}
		if len(held) != 30 {
			t.Fatalf("%d are held", len(held))
		}
		for id := range held {
			if got := <-cancelTask(t, c.Sys, id, 0, false); got.err != nil || got.Outcome != service.CancelRequested {
				t.Fatalf("cancel: %+v", got)
			}
		}
		time.Sleep(100 * time.Millisecond)
		for _, ask := range w.TakeCancels() {
			if held[ask.ID] != string(ask.Token) && held[ask.ID] != "told" {
				t.Errorf("told of %s under another token", ask.ID)
			}
			held[ask.ID] = "told"
		}
		for id, state := range held {
			if state != "told" {
				t.Errorf("not told of %s", id)
			}
		}
	})
}

// A new owner does not know the stream of a hold: the answer to an extend tells.
func TestCancelOutlivesTheOwner(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		a, b := f.Nodes["a"], f.Nodes["b"]
		w := f.Work(b, "mail", 100)
		w.Enqueue(b, "mail", "t", 12, 100*time.Millisecond)
		time.Sleep(200 * time.Millisecond)
		held := w.Take()
		f.Kill(a)
		time.Sleep(5 * time.Second)
		for _, d := range held {
			if got := <-cancelTask(t, b.Sys, d.Task.ID, 0, false); got.err != nil {
				t.Fatal(got.err)
			}
			if r := w.SettleWith(subscription.Settlement{Kind: subscription.SettleExtend}, d); !r.Cancelled {
				t.Errorf("the extend of %s did not tell", d.Task.ID)
			}
			w.SettleWith(subscription.Settlement{Kind: subscription.SettleRelease}, d)
			found, err := b.Sys.Tasks.Get(t.Context(), "mail", d.Task.ID)
			if err != nil || found.State != store.StateDead || found.Reason != store.ReasonCancelled {
				t.Errorf("%s is %v, %v", d.Task.ID, found.State, err)
			}
		}
	})
}

// The shard of a running task goes to another node, which does not know the stream of the
// hold: whoever has the worker is told all the same, from wherever the call comes.
func TestCancelReachesTheWorkerAfterItsShardWasHandedOver(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		a, b, c := f.Nodes["a"], f.Nodes["b"], f.Nodes["c"]
		w := f.Work(b, "mail", 100)
		w.Enqueue(a, "mail", "t", 30, 100*time.Millisecond)
		time.Sleep(200 * time.Millisecond)
		held := w.Take()
		if err := b.Sys.Node().Peer().Drain(true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if slices.Contains(f.Owners("mail"), "b") {
			t.Fatal("b owns shards")
		}
		for _, d := range held {
			if got := <-cancelTask(t, c.Sys, d.Task.ID, 0, false); got.err != nil || got.Outcome != service.CancelRequested {
				t.Fatalf("cancel: %+v", got)
			}
		}
		time.Sleep(100 * time.Millisecond)
		told := map[string]bool{}
		for _, ask := range w.TakeCancels() {
			told[string(ask.Token)] = true
		}
		for _, d := range held {
			if !told[string(d.Token)] {
				t.Errorf("not told of %s", d.Task.ID)
			}
		}
	})
}

// A task may be cancelled before its owner knows that it is held.
func TestCancelWhileTheHoldIsNotAnswered(t *testing.T) {
	for _, call := range []string{"hold", "hold_new"} {
		t.Run(call, func(t *testing.T) {
			servicetest.FaultBubble(t, keeping(time.Hour), func(t *testing.T, s *service.Service, f *servicetest.FaultyStore) {
				w := servicetest.Subscribe(t, s, "mail", 10)
				servicetest.Idle(time.Second)
				late := make(chan struct{})
				f.Set(func(f *servicetest.FaultyStore) { f.Late = map[string]chan struct{}{call: late} })
				delay := map[string]time.Duration{"hold": 2 * time.Second, "hold_new": 0}[call]
				go servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", delay))
				servicetest.Idle(3 * time.Second)
				if got := <-cancelTask(t, s, "a", 0, false); got.err != nil || got.State != store.StateRunning {
					t.Fatalf("cancel: %+v", got)
				}
				close(late)
				servicetest.Idle(time.Second)
				if asks := w.TakeCancels(); len(asks) != 1 || asks[0].ID != "a" || len(w.Take()) != 1 {
					t.Errorf("told of %v", asks)
				}
			})
		})
	}
}
