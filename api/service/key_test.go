package service_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/actors/upkeep"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// keyed is a task with a key, due after a delay.
func keyed(key, payload string, delay time.Duration, rule store.KeyConflict) service.NewTask {
	t := servicetest.After("mail", "", delay)
	t.Task.Payload, t.Task.MaxRetries = []byte(payload), -1
	t.Task.Key = &store.Key{Text: key, OnConflict: rule}
	return t
}

// TestKeyIsFreeWhenItsTaskIsOver: an id that dead tasks kept was a trap elsewhere
// (hibiken/asynq#842, #1055).
func TestKeyIsFreeWhenItsTaskIsOver(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 10)
		first := servicetest.EnqueueOne(t, s, keyed("k", "first", 0, store.KeyReturn))
		if first.Err != nil || first.Key != service.KeyTook {
			t.Fatalf("first: %+v", first)
		}
		d := w.TakeOne()
		again := servicetest.EnqueueOne(t, s, keyed("k", "second", 0, store.KeyReturn))
		if again.Err != nil || !again.Deduplicated || again.Key != service.KeyReturned || again.ID != first.ID || again.State != store.StateRunning {
			t.Fatalf("while it runs: %+v", again)
		}
		rejected := servicetest.EnqueueOne(t, s, keyed("k", "third", 0, store.KeyReject))
		if e := rejected.Err; e == nil || e.Reason != "KEY_TAKEN" || e.ID != first.ID || e.State != store.StateRunning || rejected.ID != first.ID {
			t.Fatalf("rejected: %+v", rejected)
		}
		w.Sub.Settle(1, []subscription.Settlement{{Kind: subscription.SettleNack, ID: d.Task.ID, Token: d.Token, Permanent: true}})
		w.TakeSettled()
		next := servicetest.EnqueueOne(t, s, keyed("k", "fourth", 0, store.KeyReject))
		if next.Err != nil || next.Key != service.KeyTook || next.ID == first.ID {
			t.Fatalf("after its death: %+v", next)
		}
		if got := w.TakeOne(); got.Task.ID != next.ID || got.Task.Key.Text != "k" {
			t.Errorf("delivered %+v", got.Task)
		}
	})
}

// TestReplaceDebounces (hibiken/asynq#1038): of many tasks in a row the last one runs,
// when nothing has come for its delay.
func TestReplaceDebounces(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		w := servicetest.Subscribe(t, f.Nodes["a"].Sys, "mail", 10)
		nodes := []*servicetest.Node{f.Nodes["a"], f.Nodes["b"], f.Nodes["c"]}
		var id string
		for i := range 20 {
			out := servicetest.EnqueueOne(t, nodes[i%3].Sys, keyed("search", fmt.Sprint(i), 300*time.Millisecond, store.KeyReplace))
			if out.Err != nil || i > 0 && (out.ID != id || out.Key != service.KeyReplaced) {
				t.Fatalf("task %d: %+v, want the id %s", i, out, id)
			}
			id = out.ID
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(199 * time.Millisecond)
		if early := w.Take(); len(early) > 0 {
			t.Fatalf("delivered %q before the last delay was over", early[0].Task.Payload)
		}
		time.Sleep(5 * time.Millisecond)
		d := w.TakeOne()
		if string(d.Task.Payload) != "19" || d.Task.ID != id {
			t.Errorf("delivered %q", d.Task.Payload)
		}
		beside := servicetest.EnqueueOne(t, nodes[1].Sys, keyed("search", "20", 0, store.KeyReplace))
		if beside.Err != nil || beside.Key != service.KeyPassed || beside.ID == id {
			t.Fatalf("while it runs: %+v", beside)
		}
		if next := w.TakeOne(); string(next.Task.Payload) != "20" {
			t.Errorf("delivered %q", next.Task.Payload)
		}
	})
}

// TestRivalsForAKey enqueue at every node at once: one task comes of it.
func TestRivalsForAKey(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		var mu sync.Mutex
		ids, took := make(map[string]map[string]bool), make(map[string]int)
		var wg sync.WaitGroup
		for _, n := range f.Nodes {
			for rival := range 5 {
				wg.Go(func() {
					for k := range 30 {
						key := fmt.Sprint("key ", k)
						out := servicetest.EnqueueOne(t, n.Sys, keyed(key, n.Name+fmt.Sprint(rival), time.Hour, store.KeyReturn))
						mu.Lock()
						if ids[key] == nil {
							ids[key] = make(map[string]bool)
						}
						ids[key][out.ID] = true
						if out.Err != nil {
							t.Error(out.Err)
						} else if out.Key == service.KeyTook {
							took[key]++
						}
						mu.Unlock()
					}
				})
			}
		}
		wg.Wait()
		for key := range ids {
			if len(ids[key]) != 1 || took[key] != 1 {
				t.Errorf("%s: %d ids, taken %d times", key, len(ids[key]), took[key])
			}
		}
		status, err := f.Nodes["b"].Sys.Topics.Describe(t.Context(), "mail")
		if err != nil || status.Depth.Scheduled != 30 {
			t.Errorf("%d tasks for 30 keys (%v)", status.Depth.Scheduled, err)
		}
	})
}

// TestKeysOutliveAReshard: the task that has the key lies in a shard of before.
func TestKeysOutliveAReshard(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		a, b := f.Nodes["a"].Sys, f.Nodes["b"].Sys
		before := make(map[string]service.Enqueued)
		for i := range 20 {
			key := fmt.Sprint("key ", i)
			before[key] = servicetest.EnqueueOne(t, a, keyed(key, "first", time.Hour, store.KeyReturn))
		}
		f.Reshard(f.Nodes["a"], "mail", 5)
		for i := range 20 {
			key := fmt.Sprint("key ", i)
			returned := servicetest.EnqueueOne(t, b, keyed(key, "second", time.Minute, store.KeyReturn))
			if returned.Err != nil || returned.ID != before[key].ID || returned.Due != before[key].Due {
				t.Fatalf("%s: %+v, want %+v", key, returned, before[key])
			}
			replaced := servicetest.EnqueueOne(t, b, keyed(key, "third", time.Minute, store.KeyReplace))
			if replaced.Err != nil || replaced.ID != before[key].ID || replaced.Key != service.KeyReplaced {
				t.Fatalf("%s: %+v", key, replaced)
			}
			if rejected := servicetest.EnqueueOne(t, a, keyed(key, "fourth", time.Minute, store.KeyReject)); rejected.Err == nil || rejected.Err.Reason != "KEY_TAKEN" {
				t.Fatalf("%s: %+v", key, rejected)
			}
			if fresh := servicetest.EnqueueOne(t, a, keyed("new "+key, "fresh", time.Hour, store.KeyReturn)); fresh.Err != nil || fresh.Key != service.KeyTook {
				t.Fatalf("a new key: %+v", fresh)
			}
		}
		w := servicetest.Subscribe(t, a, "mail", 100)
		time.Sleep(time.Minute + time.Second)
		got := w.Take()
		if len(got) != 20 {
			t.Fatalf("%d deliveries, want 20", len(got))
		}
		for _, d := range got {
			if string(d.Task.Payload) != "third" {
				t.Errorf("delivered %q", d.Task.Payload)
			}
			w.Settle(subscription.SettleAck, d)
		}
		w.TakeSettled()
		time.Sleep(3 * upkeep.ChoresEvery)
		topic, err := f.Store.GetTopic(t.Context(), "mail")
		if err != nil || place.Resharding(&topic) {
			t.Errorf("shards of before are left: %+v, %v", topic.Former, err)
		}
		if out := servicetest.EnqueueOne(t, b, keyed("key 7", "last", time.Hour, store.KeyReject)); out.Err != nil {
			t.Errorf("a key of before: %v", out.Err)
		}
	})
}

// TestLostAnswerOfAKeyedTask has the answer lost after the store did it: the call is
// repeated, and finds its own task.
func TestLostAnswerOfAKeyedTask(t *testing.T) {
	for _, rule := range []store.KeyConflict{store.KeyReturn, store.KeyReject, store.KeyReplace} {
		servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
			first := servicetest.EnqueueOne(t, s, keyed("k", "one", time.Hour, rule))
			task := keyed("k", "one", time.Hour, rule)
			task.Task.ID = first.ID // as a client that repeats its call
			again := servicetest.EnqueueOne(t, s, task)
			if again.Err != nil || again.ID != first.ID || !again.Deduplicated || again.Due != first.Due {
				t.Errorf("rule %d: %+v, want %+v", rule, again, first)
			}
		})
	}
}

// TestFreeKeysAreForgotten looks into the store: what is over leaves nothing.
func TestFreeKeysAreForgotten(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a"}, func(t *testing.T, f *servicetest.Fleet) {
		s := f.Nodes["a"].Sys
		w := servicetest.Subscribe(t, s, "mail", 100)
		for i := range 50 {
			task := keyed(fmt.Sprint("key ", i), "", 0, store.KeyReturn)
			if i%2 == 0 {
				task.Task.Key.Window = 10 * time.Second
			}
			servicetest.EnqueueOne(t, s, task)
		}
		for _, d := range w.Take() {
			w.Settle(subscription.SettleAck, d)
		}
		synctest.Wait()
		time.Sleep(3 * upkeep.ChoresEvery)
		topic, err := f.Store.GetTopic(t.Context(), "mail")
		if err != nil {
			t.Fatal(err)
		}
		stats, err := f.Store.Stats(t.Context(), place.Shards(&topic))
		for _, st := range stats {
			if st.Keys {
				t.Error("a shard has keys still")
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}
