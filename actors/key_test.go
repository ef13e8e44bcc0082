package actors

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/store"
)

// keyed is a task with a key, due after a delay.
func keyed(key, payload string, delay time.Duration, rule store.KeyConflict) NewTask {
	t := after("mail", "", delay)
	t.Task.Payload, t.Task.MaxRetries = []byte(payload), -1
	t.Task.Key = &store.Key{Text: key, OnConflict: rule}
	return t
}

func TestKeyedIDsLieWithTheirKey(t *testing.T) {
	seen := make(map[string]bool)
	spread := make([]int, 8)
	for i := range 4000 {
		key := fmt.Sprint("order ", i/2)
		id := keyedID(key)
		if seen[id] || !isKeyedID(id) || isUUIDv7(id) {
			t.Fatalf("id %q of key %q", id, key)
		}
		seen[id] = true
		for _, shards := range []int{1, 4, 8, 255} {
			if a, b := shardOf(id, shards), shardOf(keyedID(key), shards); a != b {
				t.Fatalf("ids of one key lie in shards %d and %d of %d", a, b, shards)
			}
		}
		spread[shardOf(id, 8)]++
		if err := checkIdempotency(&store.Task{ID: id, Key: &store.Key{Text: key}}); err != nil {
			t.Fatal(err)
		}
	}
	for shard, n := range spread {
		if n < 350 || n > 650 {
			t.Errorf("shard %d of 8 has %d of 4,000 tasks", shard, n)
		}
	}
}

func TestKeysAreChecked(t *testing.T) {
	for _, c := range []struct {
		key   store.Key
		id    string
		field string
	}{
		{store.Key{}, "", "idempotency.key"},
		{store.Key{Text: strings.Repeat("k", 129)}, "", "idempotency.key"},
		{store.Key{Text: "a\nb"}, "", "idempotency.key"},
		{store.Key{Text: "a\xff"}, "", "idempotency.key"},
		{store.Key{Text: "k", Window: -1}, "", "idempotency.window_ms"},
		{store.Key{Text: "k", Window: maxWindow + 1}, "", "idempotency.window_ms"},
		{store.Key{Text: "k"}, "order-7", "id"},
		{store.Key{Text: "k"}, keyedID("l"), "id"},
	} {
		if err := checkIdempotency(&store.Task{ID: c.id, Key: &c.key}); err == nil || err.Kind != Invalid || err.Field != c.field {
			t.Errorf("key %+v, id %q: %v", c.key, c.id, err)
		}
	}
	for _, key := range []string{"k", strings.Repeat("k", 128), "Bestellung №7 ü"} {
		if err := checkIdempotency(&store.Task{Key: &store.Key{Text: key}}); err != nil {
			t.Errorf("key %q: %v", key, err)
		}
	}
}

// TestKeyIsFreeWhenItsTaskIsOver: an id that dead tasks kept was a trap elsewhere
// (hibiken/asynq#842, #1055).
func TestKeyIsFreeWhenItsTaskIsOver(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, s *System) {
		w := subscribeTo(t, s, "mail", 10)
		first := enqueueOne(t, s, keyed("k", "first", 0, store.KeyReturn))
		if first.Err != nil || first.Key != KeyTook {
			t.Fatalf("first: %+v", first)
		}
		d := w.takeOne()
		again := enqueueOne(t, s, keyed("k", "second", 0, store.KeyReturn))
		if again.Err != nil || !again.Deduplicated || again.Key != KeyReturned || again.ID != first.ID || again.State != store.StateRunning {
			t.Fatalf("while it runs: %+v", again)
		}
		rejected := enqueueOne(t, s, keyed("k", "third", 0, store.KeyReject))
		if e := rejected.Err; e == nil || e.Reason != "KEY_TAKEN" || e.ID != first.ID || e.State != store.StateRunning || rejected.ID != first.ID {
			t.Fatalf("rejected: %+v", rejected)
		}
		w.sub.Settle(1, []Settlement{{Kind: SettleNack, ID: d.Task.ID, Token: d.Token, Permanent: true}})
		w.takeSettled()
		next := enqueueOne(t, s, keyed("k", "fourth", 0, store.KeyReject))
		if next.Err != nil || next.Key != KeyTook || next.ID == first.ID {
			t.Fatalf("after its death: %+v", next)
		}
		if got := w.takeOne(); got.Task.ID != next.ID || got.Task.Key.Text != "k" {
			t.Errorf("delivered %+v", got.Task)
		}
	})
}

// TestReplaceDebounces (hibiken/asynq#1038): of many tasks in a row the last one runs,
// when nothing has come for its delay.
func TestReplaceDebounces(t *testing.T) {
	fleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *testFleet) {
		w := subscribeTo(t, f.nodes["a"].sys, "mail", 10)
		nodes := []*testNode{f.nodes["a"], f.nodes["b"], f.nodes["c"]}
		var id string
		for i := range 20 {
			out := enqueueOne(t, nodes[i%3].sys, keyed("search", fmt.Sprint(i), 300*time.Millisecond, store.KeyReplace))
			if out.Err != nil || i > 0 && (out.ID != id || out.Key != KeyReplaced) {
				t.Fatalf("task %d: %+v, want the id %s", i, out, id)
			}
			id = out.ID
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(199 * time.Millisecond)
		if early := w.take(); len(early) > 0 {
			t.Fatalf("delivered %q before the last delay was over", early[0].Task.Payload)
		}
		time.Sleep(5 * time.Millisecond)
		d := w.takeOne()
		if string(d.Task.Payload) != "19" || d.Task.ID != id {
			t.Errorf("delivered %q", d.Task.Payload)
		}
		beside := enqueueOne(t, nodes[1].sys, keyed("search", "20", 0, store.KeyReplace))
		if beside.Err != nil || beside.Key != KeyPassed || beside.ID == id {
			t.Fatalf("while it runs: %+v", beside)
		}
		if next := w.takeOne(); string(next.Task.Payload) != "20" {
			t.Errorf("delivered %q", next.Task.Payload)
		}
	})
}

// TestRivalsForAKey enqueue at every node at once: one task comes of it.
func TestRivalsForAKey(t *testing.T) {
	fleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *testFleet) {
		var mu sync.Mutex
		ids, took := make(map[string]map[string]bool), make(map[string]int)
		var wg sync.WaitGroup
		for _, n := range f.nodes {
			for rival := range 5 {
				wg.Go(func() {
					for k := range 30 {
						key := fmt.Sprint("key ", k)
						out := enqueueOne(t, n.sys, keyed(key, n.name+fmt.Sprint(rival), time.Hour, store.KeyReturn))
						mu.Lock()
						if ids[key] == nil {
							ids[key] = make(map[string]bool)
						}
						ids[key][out.ID] = true
						if out.Err != nil {
							t.Error(out.Err)
						} else if out.Key == KeyTook {
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
		status, err := f.nodes["b"].sys.DescribeTopic(t.Context(), "mail")
		if err != nil || status.Depth.Scheduled != 30 {
			t.Errorf("%d tasks for 30 keys (%v)", status.Depth.Scheduled, err)
		}
	})
}

// TestKeysOutliveAReshard: the task that has the key lies in a shard of before.
func TestKeysOutliveAReshard(t *testing.T) {
	fleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *testFleet) {
		a, b := f.nodes["a"].sys, f.nodes["b"].sys
		before := make(map[string]Enqueued)
		for i := range 20 {
			key := fmt.Sprint("key ", i)
			before[key] = enqueueOne(t, a, keyed(key, "first", time.Hour, store.KeyReturn))
		}
		f.reshard(f.nodes["a"], "mail", 5)
		for i := range 20 {
			key := fmt.Sprint("key ", i)
			returned := enqueueOne(t, b, keyed(key, "second", time.Minute, store.KeyReturn))
			if returned.Err != nil || returned.ID != before[key].ID || returned.Due != before[key].Due {
				t.Fatalf("%s: %+v, want %+v", key, returned, before[key])
			}
			replaced := enqueueOne(t, b, keyed(key, "third", time.Minute, store.KeyReplace))
			if replaced.Err != nil || replaced.ID != before[key].ID || replaced.Key != KeyReplaced {
				t.Fatalf("%s: %+v", key, replaced)
			}
			if rejected := enqueueOne(t, a, keyed(key, "fourth", time.Minute, store.KeyReject)); rejected.Err == nil || rejected.Err.Reason != "KEY_TAKEN" {
				t.Fatalf("%s: %+v", key, rejected)
			}
			if fresh := enqueueOne(t, a, keyed("new "+key, "fresh", time.Hour, store.KeyReturn)); fresh.Err != nil || fresh.Key != KeyTook {
				t.Fatalf("a new key: %+v", fresh)
			}
		}
		w := subscribeTo(t, a, "mail", 100)
		time.Sleep(time.Minute + time.Second)
		got := w.take()
		if len(got) != 20 {
			t.Fatalf("%d deliveries, want 20", len(got))
		}
		for _, d := range got {
			if string(d.Task.Payload) != "third" {
				t.Errorf("delivered %q", d.Task.Payload)
			}
			w.settle(SettleAck, d)
		}
		w.takeSettled()
		time.Sleep(3 * choresEvery)
		topic, err := f.store.GetTopic(t.Context(), "mail")
		if err != nil || resharding(&topic) {
			t.Errorf("shards of before are left: %+v, %v", topic.Former, err)
		}
		if out := enqueueOne(t, b, keyed("key 7", "last", time.Hour, store.KeyReject)); out.Err != nil {
			t.Errorf("a key of before: %v", out.Err)
		}
	})
}

// TestLostAnswerOfAKeyedTask has the answer lost after the store did it: the call is
// repeated, and finds its own task.
func TestLostAnswerOfAKeyedTask(t *testing.T) {
	for _, rule := range []store.KeyConflict{store.KeyReturn, store.KeyReject, store.KeyReplace} {
		bubble(t, Config{}, func(t *testing.T, s *System) {
			first := enqueueOne(t, s, keyed("k", "one", time.Hour, rule))
			task := keyed("k", "one", time.Hour, rule)
			task.Task.ID = first.ID // as a client that repeats its call
			again := enqueueOne(t, s, task)
			if again.Err != nil || again.ID != first.ID || !again.Deduplicated || again.Due != first.Due {
				t.Errorf("rule %d: %+v, want %+v", rule, again, first)
			}
		})
	}
}

// TestFreeKeysAreForgotten looks into the store: what is over leaves nothing.
func TestFreeKeysAreForgotten(t *testing.T) {
	fleetBubble(t, []string{"a"}, func(t *testing.T, f *testFleet) {
		s := f.nodes["a"].sys
		w := subscribeTo(t, s, "mail", 100)
		for i := range 50 {
			task := keyed(fmt.Sprint("key ", i), "", 0, store.KeyReturn)
			if i%2 == 0 {
				task.Task.Key.Window = 10 * time.Second
			}
			enqueueOne(t, s, task)
		}
		for _, d := range w.take() {
			w.settle(SettleAck, d)
		}
		synctest.Wait()
		time.Sleep(3 * choresEvery)
		topic, err := f.store.GetTopic(t.Context(), "mail")
		if err != nil {
			t.Fatal(err)
		}
		stats, err := f.store.Stats(t.Context(), shardsOf(&topic))
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
