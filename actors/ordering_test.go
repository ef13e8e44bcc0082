package actors

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// inLine is a task of an ordering key, due after a delay; its payload names it.
func inLine(key, name string, delay time.Duration) NewTask {
	t := after("mail", "", delay)
	t.Task.Payload, t.Task.MaxRetries = []byte(name), -1
	t.Task.Traits = &store.Traits{OrderingKey: key}
	return t
}

func namesOf(got []Delivery) (names []string) {
	for _, d := range got {
		names = append(names, string(d.Task.Payload))
	}
	return names
}

// gets fails unless these tasks and no others have come, in any order.
func (o *stream) gets(want ...string) map[string]Delivery {
	o.t.Helper()
	synctest.Wait()
	got := o.take()
	names := namesOf(got)
	slices.Sort(names)
	if !slices.Equal(names, slices.Sorted(slices.Values(want))) {
		o.t.Fatalf("got %v, want %v", names, want)
	}
	byName := make(map[string]Delivery)
	for _, d := range got {
		byName[string(d.Task.Payload)] = d
	}
	return byName
}

func TestTasksOfAKeyGoOneAtATime(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, s *System) {
		w := subscribeTo(t, s, "mail", 100)
		var tasks []NewTask
		for i := range 20 {
			tasks = append(tasks, inLine("a", fmt.Sprint("a", i), 0), inLine("b", fmt.Sprint("b", i), 0))
		}
		results, err := s.Enqueue(t.Context(), tasks)
		if err != nil || results[0].Err != nil {
			t.Fatal(err, results[0].Err)
		}
		for i := range 20 {
			got := w.gets(fmt.Sprint("a", i), fmt.Sprint("b", i))
			idle(time.Minute / 3) // and nothing else comes meanwhile
			w.gets()
			for _, d := range got {
				w.settle(SettleAck, d)
			}
		}
		w.gets()
	})
}

// Asked for in hibiken/asynq#429, one after the other by key: what failed is tried again
// before what comes behind it.
func TestRetryKeepsTheHead(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, s *System) {
		w := subscribeTo(t, s, "mail", 100)
		for i := range 3 {
			enqueueOne(t, s, inLine("a", fmt.Sprint("a", i), 0))
		}
		first := w.gets("a0")["a0"]
		later := time.Minute
		w.sub.Settle(1, []Settlement{{Kind: SettleNack, ID: first.Task.ID, Token: first.Token, Delay: &later, Error: "no"}})
		enqueueOne(t, s, inLine("b", "b0", 0))
		w.settle(SettleAck, w.gets("b0")["b0"])
		idle(59 * time.Second)
		w.gets()
		found, err := s.Get(t.Context(), "mail", first.Task.ID)
		if err != nil || found.WaitingFor != WaitsForWorker || found.State != store.StateRetrying {
			t.Errorf("the head is %+v, %v", found.WaitingFor, err)
		}
		page, _, err := s.List(t.Context(), "mail", store.StateReady, 10, "")
		if err != nil || len(page) != 2 || page[0].WaitingFor != WaitsForOrder || page[1].WaitingFor != WaitsForOrder {
			t.Errorf("those behind it are %+v, %v", page, err)
		}
		idle(1001 * time.Millisecond)
		again := w.gets("a0")["a0"]
		w.sub.Settle(2, []Settlement{{Kind: SettleRelease, ID: again.Task.ID, Token: again.Token}})
		again = w.gets("a0")["a0"]
		w.sub.Settle(3, []Settlement{{Kind: SettleNack, ID: again.Task.ID, Token: again.Token, Permanent: true}})
		w.settle(SettleAck, w.gets("a1")["a1"]) // a dead letter keeps nothing back
		w.settle(SettleAck, w.gets("a2")["a2"])
	})
}

func TestWhatKeepsOthersBackMayGo(t *testing.T) {
	for name, c := range map[string]func(t *testing.T, s *System, head string){
		"deleted": func(t *testing.T, s *System, head string) {
			if _, err := s.Delete(t.Context(), "mail", head); err != nil {
				t.Error(err)
			}
		},
		"deleted behind its back": func(t *testing.T, s *System, head string) {
			f, err := s.Get(t.Context(), "mail", head)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := s.store.Remove(t.Context(), f.Shard, []string{head}); err != nil {
				t.Error(err)
			}
			idle(15 * time.Second)
		},
		"promoted": func(t *testing.T, s *System, head string) {
			if _, err := s.Promote(t.Context(), "mail", head, 0); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Config{}, func(t *testing.T, s *System) {
				w := subscribeTo(t, s, "mail", 100)
				enqueueOne(t, s, inLine("a", "head", 0))
				enqueueOne(t, s, inLine("a", "next", 0))
				head, later := w.gets("head")["head"], 10*time.Minute // beyond the horizon
				w.sub.Settle(1, []Settlement{{Kind: SettleNack, ID: head.Task.ID, Token: head.Token, Delay: &later}})
				idle(time.Minute)
				w.gets()
				c(t, s, head.Task.ID)
				if name == "promoted" {
					w.settle(SettleAck, w.gets("head")["head"])
				}
				w.settle(SettleAck, w.gets("next")["next"])
			})
		})
	}
}

// TestLaterRetryComesBack has a head that waits beyond the window of an owner whose
// budget is full of the tasks behind it.
func TestLaterRetryComesBack(t *testing.T) {
	bubble(t, Config{ReadyBudget: 20, WheelBudget: 20, Topic: store.Topic{Shards: 1}}, func(t *testing.T, s *System) {
		w := subscribeTo(t, s, "mail", 100)
		enqueueOne(t, s, inLine("a", "head", 0))
		head, later := w.gets("head")["head"], 10*time.Minute
		for i := range 200 {
			enqueueOne(t, s, inLine("a", fmt.Sprintf("a%03d", i), 0))
		}
		w.sub.Settle(1, []Settlement{{Kind: SettleNack, ID: head.Task.ID, Token: head.Token, Delay: &later}})
		for i := range 100 { // other keys flow
			enqueueOne(t, s, inLine(fmt.Sprint("b", i), "b", 0))
			enqueueOne(t, s, after("mail", fmt.Sprint("c", i), 0))
		}
		others := 0
		for range 200 {
			for _, d := range w.take() {
				others++
				w.settle(SettleAck, d)
				_ = w.sub.Grant(1)
			}
			synctest.Wait()
		}
		if others != 200 {
			t.Errorf("%d tasks of others came, want 200", others)
		}
		idle(10*time.Minute - time.Second)
		w.gets()
		idle(1001 * time.Millisecond)
		w.settle(SettleAck, w.gets("head")["head"])
		for i := range 200 {
			name := fmt.Sprintf("a%03d", i)
			w.settle(SettleAck, w.gets(name)[name])
			_ = w.sub.Grant(1)
		}
	})
}

// TestEarlierTaskGoesFirst: the order is that of due times, not that of enqueues.
func TestEarlierTaskGoesFirst(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, s *System) {
		for _, at := range []int{5, 1, 4, 2, 3} {
			task := inLine("a", fmt.Sprint(at), 0)
			task.When.At = store.Millis(time.Now().UnixMilli() + int64(at))
			enqueueOne(t, s, task)
		}
		last := enqueueOne(t, s, inLine("a", "9", 9*time.Millisecond))
		idle(time.Second)
		if _, err := s.Reschedule(t.Context(), "mail", last.ID, When{At: 1}, 0); err != nil { // before all that wait
			t.Fatal(err)
		}
		w := subscribeTo(t, s, "mail", 100)
		for _, name := range []string{"9", "1", "2", "3", "4", "5"} {
			w.settle(SettleAck, w.gets(name)[name])
		}
	})
}

func TestOrderingKeysAreChecked(t *testing.T) {
	long := strings.Repeat("k", store.MaxKey+1)
	for _, c := range []struct{ key, id, field string }{
		{long, "", "ordering_key"},
		{"a\xff", "", "ordering_key"},
		{"a", "mine", "ordering_key"},
		{"a", keyedID("b"), "ordering_key"},
		{long[1:], "", ""},
		{"a", keyedID("a"), ""},
	} {
		task := NewTask{Task: store.Task{ID: c.id, MaxRetries: -1, Traits: &store.Traits{OrderingKey: c.key}}}
		limits := Limits{}.withDefaults()
		err := limits.checkTask(&task)
		if c.field == "" && err != nil || c.field != "" && (err == nil || err.Kind != Invalid || err.Field != c.field) {
			t.Errorf("key %.10q, id %q: %v", c.key, c.id, err)
		}
	}
	both := NewTask{Task: store.Task{ID: keyedID("a"), MaxRetries: -1, Key: &store.Key{Text: "k"}, Traits: &store.Traits{OrderingKey: "a"}}}
	limits := Limits{}.withDefaults()
	if err := limits.checkTask(&both); err != nil {
		t.Errorf("an id made for the ordering key of a task with both keys: %v", err)
	}
}

func TestIDsOfAKeyRise(t *testing.T) {
	last := ""
	for range 10_000 {
		id := keyedID("a")
		if id <= last || !madeFor(id, "a") {
			t.Fatalf("%s follows %s", id, last)
		}
		last = id
	}
}

// TestIdempotencyKeyIsOfItsOrderingKey has both keys on a task.
func TestIdempotencyKeyIsOfItsOrderingKey(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, s *System) {
		both := func(order string) Enqueued {
			task := inLine(order, order, time.Hour)
			task.Task.Key = &store.Key{Text: "once"}
			return enqueueOne(t, s, task)
		}
		a, b := both("a"), both("b")
		if a.Key != KeyTook || b.Key != KeyTook || a.ID == b.ID {
			t.Fatalf("of two ordering keys: %+v, %+v", a, b)
		}
		for i := range 3 {
			if again := both("a"); again.ID != a.ID || again.Key != KeyReturned {
				t.Errorf("again %d: %+v", i, again)
			}
		}
	})
}

// TestOrderOutlivesAReshard: tasks of a key go where its unfinished ones are, and a dead
// letter of a former shard is requeued where they are now.
func TestOrderOutlivesAReshard(t *testing.T) {
	fleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *testFleet) {
		a, b := f.nodes["a"].sys, f.nodes["b"].sys
		w := subscribeTo(t, a, "mail", 100)
		idle(200 * time.Millisecond)
		enqueueOne(t, a, inLine("k", "dead", 0))
		synctest.Wait()
		dead := w.takeOne()
		w.sub.Settle(1, []Settlement{{Kind: SettleNack, ID: dead.Task.ID, Token: dead.Token, Permanent: true, Error: "bad"}})
		first := enqueueOne(t, a, inLine("k", "first", 0))
		held := w.gets("first")["first"]
		was, err := a.Get(t.Context(), "mail", first.ID)
		if err != nil {
			t.Fatal(err)
		}
		f.reshard(f.nodes["a"], "mail", 5)
		second := enqueueOne(t, b, inLine("k", "second", 0))
		if second.Err != nil {
			t.Fatal(second.Err)
		}
		idle(time.Second)
		w.gets()
		if got, err := b.Get(t.Context(), "mail", second.ID); err != nil || got.Shard != was.Shard || got.WaitingFor != WaitsForOrder {
			t.Errorf("the second is in %v, waits for %d: %v", got.Shard, got.WaitingFor, err)
		}
		other := enqueueOne(t, b, inLine("other", "other", 0))
		w.settle(SettleAck, w.gets("other")["other"])
		if other.Err != nil {
			t.Error(other.Err)
		}
		w.settle(SettleAck, held)
		idle(3 * time.Second) // hints get lost while shards change: then its owner looks
		w.settle(SettleAck, w.gets("second")["second"])
		idle(time.Second)
		third := enqueueOne(t, a, inLine("k", "third", 0))
		idle(time.Millisecond)
		got, err := a.Get(t.Context(), "mail", third.ID)
		if err != nil || got.Shard == was.Shard {
			t.Errorf("the third is in %v of before: %v", got.Shard, err)
		}
		if n, missing, err := b.RequeueDead(t.Context(), "mail", []string{dead.Task.ID}, DeadFilter{}); n != 1 || len(missing) > 0 || err != nil {
			t.Fatalf("requeued %d, missing %v: %v", n, missing, err)
		}
		idle(time.Second)
		w.settle(SettleAck, w.gets("third")["third"])
		idle(time.Second)
		again := w.gets("dead")["dead"]
		if again.Task.ID != dead.Task.ID || again.Task.Attempt != 1 {
			t.Errorf("requeued as %+v", again.Task)
		}
		w.settle(SettleAck, again)
		idle(time.Minute)
		topic, err := f.store.GetTopic(t.Context(), "mail")
		if err != nil || resharding(&topic) {
			t.Errorf("shards of before are left: %+v, %v", topic.Former, err)
		}
	})
}

// witness checks from the workers' side what order promises.
type witness struct {
	*crew
	holding map[string]Delivery // by key
	began   map[string]bool     // tasks that were delivered
	last    map[string]int      // by key: the number of the last one that began
	turn    int
}

func (c *crew) witness() *witness {
	return &witness{crew: c, holding: map[string]Delivery{}, began: map[string]bool{}, last: map[string]int{}}
}

// run has the workers take tasks, and end one of three each time that they are looked at:
// most are acked, some fail, and some are given back.
func (w *witness) run(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		for _, man := range w.workers {
			if !w.dead[man.at] {
				w.work(man)
			}
		}
	}
}

func (w *witness) work(man *crewman) {
	for _, d := range man.take() {
		w.see(d)
		man.running = append(man.running, run{Delivery: d})
	}
	man.running = slices.DeleteFunc(man.running, func(r run) bool {
		if w.turn++; w.turn%3 != 0 {
			return false
		}
		kind := SettleAck
		switch {
		case w.turn%15 == 0:
			kind = SettleNack
		case w.turn%21 == 0:
			kind = SettleRelease
		}
		if held := w.holding[r.Task.Traits.OrderingKey]; held.Task != nil && held.Task.ID == r.Task.ID {
			delete(w.holding, r.Task.Traits.OrderingKey)
		}
		man.settle(kind, r.Delivery)
		return true
	})
	for _, s := range man.takeSettled() {
		if s.Err == nil && s.Kind == SettleAck {
			w.acked[s.ID] = true
		}
		_ = man.sub.Grant(1)
	}
}

// see takes a delivery down, and fails when another task of its key is held, or one that
// is due later had begun. Tasks are numbered in order of their due times.
func (w *witness) see(d Delivery) {
	key, id := d.Task.Traits.OrderingKey, d.Task.ID
	if held := w.holding[key]; held.Task != nil && held.Task.ID != id && held.Deadline.Time().After(time.Now()) {
		w.Errorf("key %s: %s is held as %s is delivered", key, held.Task.Payload, d.Task.Payload)
	}
	w.holding[key] = d
	if w.began[id] {
		return
	}
	w.began[id] = true
	n, _ := strconv.Atoi(string(d.Task.Payload)) // not by due time: an attempt may have come to nothing before a worker saw it
	if n < w.last[key] {
		w.Errorf("key %s: %d comes after %d", key, n, w.last[key])
	}
	w.last[key] = n
}

// TestOrderHoldsForTheFleet kills a node, drains another one and reshards, under traffic.
func TestOrderHoldsForTheFleet(t *testing.T) {
	fleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *testFleet) {
		visibility := 3 * time.Second
		f.limited("mail", TopicChange{Visibility: &visibility, Shards: new(6), Backoff: &store.Backoff{Kind: store.BackoffFixed, Base: 300 * time.Millisecond}})
		w := f.hire("mail", 6, 20, "a", "b", "c").witness()
		const keys = 25
		total, due := 0, store.Millis(time.Now().UnixMilli())
		enqueue := func(at string, n int) {
			var tasks []NewTask
			for range n {
				total++
				due += 7 // rises, so the order is known
				task := inLine(fmt.Sprint("k", total%keys), fmt.Sprint(total), 0)
				task.When.At, task.Task.MaxRetries = due, 1000
				tasks = append(tasks, task)
			}
			results, err := f.nodes[at].sys.Enqueue(t.Context(), tasks)
			if err != nil {
				t.Fatal(err)
			}
			for i := range results {
				if results[i].Err != nil {
					t.Fatal(results[i].Err)
				}
			}
		}
		enqueue("a", 400)
		w.run(3 * time.Second)
		f.reshard(f.nodes["a"], "mail", 4)
		enqueue("c", 300)
		w.run(2 * time.Second)
		f.kill(f.nodes["b"])
		w.dead[f.nodes["b"]] = true
		enqueue("a", 300)
		w.run(8 * time.Second)
		f.reshard(f.nodes["c"], "mail", 9)
		enqueue("c", 300)
		w.run(2 * time.Second)
		if err := f.nodes["c"].sys.DrainPeer(true); err != nil {
			t.Fatal(err)
		}
		enqueue("a", 300)
		w.run(60 * time.Second)
		if len(w.acked) < total {
			t.Errorf("%d of %d tasks are done", len(w.acked), total)
		}
		if len(w.began) != total {
			t.Errorf("%d of %d tasks were delivered", len(w.began), total)
		}
	})
}

// lostOrders is a store that does not say what is first of a key for a while.
type lostOrders struct {
	store.Store
	failures int
}

func (s *lostOrders) InOrder(ctx context.Context, shard store.Shard, keys []string, limit int) (store.Stamp, [][]store.Ordered, error) {
	if s.failures--; s.failures >= 0 {
		return store.Stamp{}, nil, store.ErrUnavailable
	}
	return s.Store.InOrder(ctx, shard, keys, limit)
}

func TestKeyGoesOnAfterAFailingStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, Config{Topic: store.Topic{Shards: 1}}, &lostOrders{memstore.New(), 3})
		defer func() {
			s.Stop(t.Context())
			time.Sleep(5 * time.Second)
		}()
		for i := range 100 {
			enqueueOne(t, s, inLine("a", fmt.Sprintf("a%03d", i), 0))
		}
		w := subscribeTo(t, s, "mail", 1000)
		for i := range 100 {
			name := fmt.Sprintf("a%03d", i)
			if i >= parkedMost && i < parkedMost+3 {
				idle(10 * time.Second) // the store does not say which is next
			}
			w.settle(SettleAck, w.gets(name)[name])
		}
	})
}
