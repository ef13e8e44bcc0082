package actors_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
)

// TestHoldsOfAFormerOwnerRunOutOnTime fails a read just when it matters: of the walk that
// finds the holds of the owner before, or of the task when its hold runs out.
func TestHoldsOfAFormerOwnerRunOutOnTime(t *testing.T) {
	for _, call := range []string{"running", "get"} {
		t.Run(call, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := servicetest.NewFaultyStore()
				cfg := actors.Config{WatchdogInterval: time.Minute, Topic: store.Topic{Shards: 1, Visibility: 20 * time.Second,
					Backoff: store.Backoff{Kind: store.BackoffFixed, Base: 100 * time.Millisecond}}}
				former := servicetest.Start(t, cfg, f)
				w := servicetest.Subscribe(t, former, "mail", 10)
				servicetest.EnqueueOne(t, former, servicetest.After("mail", "a", 0))
				ends := w.TakeOne().Deadline.Time()
				servicetest.Stop(former)

				f.Set(func(f *servicetest.FaultyStore) { f.Losing[call] = 1 })
				s := servicetest.Start(t, cfg, f)
				defer servicetest.Stop(s)
				w = servicetest.Subscribe(t, s, "mail", 10)
				time.Sleep(time.Until(ends) + 2*time.Second)
				if got := len(w.Take()); got != 1 {
					t.Errorf("%d tasks two seconds after the hold of the former owner ran out, want 1", got)
				}
			})
		})
	}
}

// TestHoldsOfAnUnknownOutcomeRunOutOnTime loses every reply of a call that holds, for longer
// than it is repeated: the store has a hold that no worker knows of. It is taken back when it
// runs out, and not when the watchdog looks.
func TestHoldsOfAnUnknownOutcomeRunOutOnTime(t *testing.T) {
	for call, delay := range map[string]time.Duration{"hold": time.Second, "hold_new": 0} {
		t.Run(call, func(t *testing.T) {
			cfg := actors.Config{WatchdogInterval: 5 * time.Minute, Topic: store.Topic{Shards: 1, Visibility: 20 * time.Second,
				Backoff: store.Backoff{Kind: store.BackoffFixed, Base: 100 * time.Millisecond}}}
			servicetest.FaultBubble(t, cfg, func(t *testing.T, s *service.Service, f *servicetest.FaultyStore) {
				w := servicetest.Subscribe(t, s, "mail", 10)
				f.Set(func(f *servicetest.FaultyStore) { f.Losing[call] = 1000 })
				task := servicetest.After("mail", "a", delay)
				task.Task.MaxRetries = -1
				_, _ = s.Tasks.Enqueue(t.Context(), []service.NewTask{task})
				time.Sleep(delay + actors.ResolveFor + 2*time.Second)
				f.Set(func(f *servicetest.FaultyStore) { f.Losing[call] = 0 })
				time.Sleep(25 * time.Second)
				if got := len(w.Take()); got != 1 {
					t.Errorf("%d tasks once the hold that nobody knew of had run out, want 1", got)
				}
			})
		})
	}
}
