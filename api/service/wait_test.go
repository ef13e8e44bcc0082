package service_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/runtime"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
)

// waited is the answer to a call that waits.
type waited struct {
	found service.Found
	err   error
	took  time.Duration
}

// waitFor calls Wait in the background.
func waitFor(t *testing.T, s *service.Service, topic, id string, wait time.Duration) chan waited {
	done := make(chan waited, 1)
	go func() {
		begun := time.Now()
		found, err := s.Tasks.Wait(t.Context(), topic, id, wait)
		done <- waited{found, err, time.Since(begun)}
	}()
	synctest.Wait()
	return done
}

func keeping(d time.Duration) actors.Config {
	return actors.Config{Topic: store.Topic{DoneRetention: d}}
}

func TestWaitReturnsTheResultOnceTheTaskIsDone(t *testing.T) {
	servicetest.Bubble(t, keeping(time.Hour), func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 10)
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", 5*time.Second))
		done := waitFor(t, s, "", "a", time.Minute)
		time.Sleep(6 * time.Second)
		w.SettleWith(subscription.Settlement{Kind: subscription.SettleNack, Error: "not yet", Delay: new(time.Second)}, w.TakeOne())
		time.Sleep(2 * time.Second)
		if len(done) > 0 {
			t.Fatal("returned while the task was to be tried again")
		}
		at := time.Now()
		w.SettleWith(subscription.Settlement{Kind: subscription.SettleAck, Result: []byte("42")}, w.TakeOne())
		got := <-done
		if got.err != nil || got.found.State != store.StateDone || string(got.found.Result) != "42" || len(got.found.Attempts) != 2 {
			t.Errorf("waited for %+v, %v", got.found, got.err)
		}
		if late := time.Since(at); late > 0 {
			t.Errorf("told %v late", late)
		}
		if again := <-waitFor(t, s, "mail", "a", time.Minute); again.err != nil || again.took > 0 || string(again.found.Result) != "42" {
			t.Errorf("a second wait: %+v", again)
		}
		if n := s.Node().Waiters().Len(); n != 0 {
			t.Errorf("%d waiters are left", n)
		}
	})
}

func TestWaitEndsWithTheStateThatThereIs(t *testing.T) {
	servicetest.Bubble(t, keeping(time.Hour), func(t *testing.T, s *service.Service) {
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", time.Hour))
		if got := <-waitFor(t, s, "mail", "a", 0); got.err != nil || got.took > 0 || got.found.State != store.StateScheduled {
			t.Errorf("a look: %+v", got)
		}
		got := <-waitFor(t, s, "mail", "a", 10*time.Second)
		if got.err != nil || got.took != 10*time.Second || got.found.State != store.StateScheduled {
			t.Errorf("a wait: %+v", got)
		}
		for _, c := range []struct {
			topic, id string
			wait      time.Duration
			reason    string
		}{
			{"mail", "absent", time.Second, "NO_TASK"},
			{"absent", "a", time.Second, "NO_TOPIC"},
			{"mail", "a", -1, "OUT_OF_RANGE_FIELD"},
			{"mail", "a", time.Minute + 1, "OUT_OF_RANGE_FIELD"},
			{"mail", "", 0, "BAD_ID"},
		} {
			if got := <-waitFor(t, s, c.topic, c.id, c.wait); servicetest.Reason(got.err) != c.reason {
				t.Errorf("%+v: %v", c, got.err)
			}
		}
	})
}

// What is gone may have been done or deleted, and the answer does not claim to know.
func TestWaitSaysThatATaskIsGone(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 10)
		for _, id := range []string{"acked", "deleted"} {
			delay := time.Duration(0)
			if id == "deleted" {
				delay = time.Hour
			}
			servicetest.EnqueueOne(t, s, servicetest.After("mail", id, delay))
			done := waitFor(t, s, "mail", id, time.Minute)
			if id == "acked" {
				w.SettleWith(subscription.Settlement{Kind: subscription.SettleAck, Result: []byte("lost")}, w.TakeOne())
			} else if _, err := s.Tasks.Delete(t.Context(), "mail", id); err != nil {
				t.Fatal(err)
			}
			got := <-done
			if servicetest.Reason(got.err) != "TASK_GONE" || got.took > 0 {
				t.Errorf("%s: %v after %v", id, got.err, got.took)
			}
		}
	})
}

func TestWaitHearsOfEveryEnd(t *testing.T) {
	cfg := keeping(time.Hour)
	cfg.Topic.Visibility, cfg.Topic.MaxRetries = 2*time.Second, -1
	for name, c := range map[string]struct {
		task   service.NewTask
		credit int
		end    func(w *servicetest.Stream)
		state  store.State
		within time.Duration
	}{
		"failed for good": {servicetest.After("mail", "a", 0), 1, func(w *servicetest.Stream) {
			w.SettleWith(subscription.Settlement{Kind: subscription.SettleNack, Permanent: true}, w.TakeOne())
		}, store.StateDead, 0},
		"hold expired": {service.NewTask{Topic: "mail", Task: store.Task{ID: "a", MaxRetries: 0}}, 1, func(*servicetest.Stream) {}, store.StateDead, 3 * time.Second},
		"expired": {service.NewTask{Topic: "mail", Task: store.Task{ID: "a"}, ExpireAfter: time.Second}, 0, func(w *servicetest.Stream) {
			time.Sleep(2 * time.Second)
			_ = w.Sub.Grant(1)
		}, store.StateExpired, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			servicetest.Bubble(t, cfg, func(t *testing.T, s *service.Service) {
				w := servicetest.Subscribe(t, s, "mail", c.credit)
				if out, err := s.Tasks.Enqueue(t.Context(), []service.NewTask{c.task}); err != nil || out[0].Err != nil {
					t.Fatal(err, out)
				}
				done := waitFor(t, s, "mail", "a", time.Minute)
				c.end(w)
				if got := <-done; got.err != nil || got.found.State != c.state || got.took > c.within {
					t.Errorf("%v, %v after %v", got.found.State, got.err, got.took)
				}
			})
		})
	}
}

// The node that waits, the owner of the shard and the node that settles are three.
func TestWaitHearsWhatOtherNodesDo(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		a, b, c := f.Nodes["a"], f.Nodes["b"], f.Nodes["c"]
		if _, err := a.Sys.Topics.Create(t.Context(), "mail", service.TopicChange{Shards: new(12), DoneRetention: new(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		w := f.Work(b, "mail", 100)
		w.Enqueue(a, "mail", "t", 60, time.Second)
		var waits []chan waited
		for id := range w.Due {
			waits = append(waits, waitFor(t, c.Sys, "mail", id, time.Minute))
		}
		begun := time.Now()
		for end := begun.Add(2 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
			for _, d := range w.Take() {
				if _, err := a.Sys.Delivery.Settle(t.Context(), "mail", []subscription.Settlement{{Kind: subscription.SettleAck, ID: d.Task.ID, Token: d.Token, Result: d.Task.Payload}}); err != nil {
					t.Fatal(err)
				}
				_ = w.Sub.Grant(1)
			}
		}
		for _, done := range waits {
			got := <-done
			if got.err != nil || string(got.found.Result) != got.found.ID || got.took > time.Second+50*time.Millisecond {
				t.Errorf("%s: %q, %v after %v", got.found.ID, got.found.Result, got.err, got.took)
			}
			if late := begun.Add(got.took).Sub(got.found.Finished.Time()); late > 20*time.Millisecond {
				t.Errorf("%s: told %v late", got.found.ID, late)
			}
		}
	})
}

// Without a word from other nodes the store is looked at every second.
func TestWaitLooksForItself(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		a, b := f.Nodes["a"], f.Nodes["b"]
		w := f.Work(a, "mail", 0)
		w.Enqueue(a, "mail", "t", 20, time.Hour)
		f.Edit(func() { f.Deaf = true })
		var waits []chan waited
		for id := range w.Due {
			waits = append(waits, waitFor(t, b.Sys, "mail", id, time.Minute))
		}
		time.Sleep(3500 * time.Millisecond)
		for id := range w.Due {
			if _, err := a.Sys.Tasks.Delete(t.Context(), "mail", id); err != nil {
				t.Fatal(err)
			}
		}
		for _, done := range waits {
			if got := <-done; servicetest.Reason(got.err) != "TASK_GONE" || got.took > 3500*time.Millisecond+runtime.WaitersEvery {
				t.Errorf("%v after %v", got.err, got.took)
			}
		}
		time.Sleep(runtime.ToldFor + runtime.WaitersEvery)
		if n, m := a.Sys.Node().Waiters().Len(), b.Sys.Node().Waiters().Len(); n+m > 0 {
			t.Errorf("%d and %d waiters are left", n, m)
		}
	})
}

func TestResultsAreBounded(t *testing.T) {
	servicetest.Bubble(t, keeping(time.Hour), func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 10)
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", 0))
		d := w.TakeOne()
		ack := subscription.Settlement{Kind: subscription.SettleAck, ID: "a", Token: d.Token, Result: make([]byte, 256<<10+1)}
		w.Sub.Settle(1, []subscription.Settlement{ack})
		if r := w.TakeSettled(); len(r) != 1 || r[0].Err == nil || r[0].Err.Field != "result" || r[0].Err.Reason != "RESULT_TOO_LARGE" {
			t.Fatalf("a large result: %+v", r)
		}
		w.SettleWith(subscription.Settlement{Kind: subscription.SettleAck, Result: make([]byte, 256<<10)}, d)
		got, err := s.Tasks.Get(t.Context(), "mail", "a")
		if err != nil || len(got.Result) != 256<<10 {
			t.Errorf("result of %d bytes, %v", len(got.Result), err)
		}
	})
}

// Attempts that no worker has seen are none.
func TestHistoryLeavesOutWhatNoWorkerSaw(t *testing.T) {
	servicetest.Bubble(t, keeping(time.Hour), func(t *testing.T, s *service.Service) {
		gone := servicetest.Subscribe(t, s, "mail", 0)
		gone.Refusing = true
		_ = gone.Sub.Grant(1)
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", time.Second))
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		gone.Sub.Unsubscribe(nil)
		w := servicetest.Subscribe(t, s, "mail", 1)
		w.SettleWith(subscription.Settlement{Kind: subscription.SettleRelease}, w.TakeOne())
		_ = w.Sub.Grant(1)
		w.SettleWith(subscription.Settlement{Kind: subscription.SettleAck}, w.TakeOne())
		got, err := s.Tasks.Get(t.Context(), "mail", "a")
		if err != nil {
			t.Fatal(err)
		}
		var outcomes []store.Outcome
		for _, a := range got.Attempts {
			outcomes = append(outcomes, a.Outcome)
			if a.Number != 1 || a.Node != s.Node().Config().Node || a.Worker != "w" {
				t.Errorf("attempt %+v", a)
			}
		}
		if fmt.Sprint(outcomes) != fmt.Sprint([]store.Outcome{store.OutcomeReleased, store.OutcomeAcked}) {
			t.Errorf("outcomes %v", outcomes)
		}
	})
}
