package actors

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/store"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// worker is a worker that acks at once, and the books of what it got.
type ledger struct {
	*stream
	due  map[string]store.Millis // enqueued and not acked
	seen map[string]int
	last map[string]Delivery // of each task
	late time.Duration       // the worst so far
	skew time.Duration       // how far the store's clock is ahead
}

// work subscribes at a node and keeps books of what is enqueued with it.
func (f *testFleet) work(at *testNode, topic string, credit int) *ledger {
	f.Helper()
	w := &ledger{stream: subscribeTo(f.T, at.sys, topic, credit), due: map[string]store.Millis{}, seen: map[string]int{}, last: map[string]Delivery{}}
	time.Sleep(200 * time.Millisecond) // until every node has claimed its shards
	synctest.Wait()
	return w
}

// enqueue stores n tasks, due evenly over a while from now.
func (w *ledger) enqueue(at *testNode, topic, prefix string, n int, over time.Duration) {
	w.t.Helper()
	tasks := make([]NewTask, n)
	for i := range tasks {
		tasks[i] = after(topic, fmt.Sprintf("%s-%d", prefix, i), over*time.Duration(i+1)/time.Duration(n))
		tasks[i].Task.MaxRetries = -1
	}
	w.store(at, tasks)
}

// store enqueues tasks and opens their books.
func (w *ledger) store(at *testNode, tasks []NewTask) {
	w.t.Helper()
	results, err := at.sys.Enqueue(w.t.Context(), tasks)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range results {
		if r.Err != nil {
			w.t.Fatal(r.Err)
		}
		w.due[r.ID] = r.Due
	}
}

// run acks what comes, and grants again, for a while.
func (w *ledger) run(d time.Duration) {
	w.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Millisecond) {
		w.takeIn()
	}
}

func (w *ledger) takeIn() {
	w.t.Helper()
	got := w.take()
	for _, d := range got {
		id := d.Task.ID
		w.last[id] = d
		if w.seen[id]++; d.Task.Attempt != w.seen[id] {
			w.t.Errorf("%s: attempt %d at delivery %d", id, d.Task.Attempt, w.seen[id])
		}
		late := time.Since(d.Task.Due.Time()) + w.skew
		if late < 0 {
			w.t.Errorf("%s: early by %v", id, -late)
		}
		w.late = max(w.late, late)
		w.settle(SettleAck, d)
	}
	for _, s := range w.takeSettled() {
		if s.Err != nil {
			w.t.Errorf("%s: ack: %v", s.ID, s.Err)
		}
		delete(w.due, s.ID)
	}
	if len(got) > 0 {
		_ = w.sub.Grant(len(got))
	}
}

// done fails unless everything was delivered, once, no later than late.
func (w *ledger) done(late time.Duration) {
	w.t.Helper()
	w.run(100 * time.Millisecond)
	if len(w.due) > 0 {
		w.t.Errorf("%d tasks are missing", len(w.due))
	}
	for id, n := range w.seen {
		if n != 1 {
			w.t.Errorf("%s was delivered %d times", id, n)
		}
	}
	if w.late > late {
		w.t.Errorf("late by %v, want %v at most", w.late, late)
	}
	w.late = 0
}

func TestNodesShareTheShards(t *testing.T) {
	fleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *testFleet) {
		w := f.work(f.nodes["a"], "mail", 100)
		count := map[string]int{}
		for _, owner := range f.owners("mail") {
			count[owner]++
		}
		if len(count) != 3 || count[""] > 0 {
			t.Errorf("shards by node: %v", count)
		}
		for _, at := range f.nodes {
			w.enqueue(at, "mail", at.name, 200, time.Second)
		}
		w.run(time.Second)
		w.done(5 * time.Millisecond)
	})
}

func TestImmediateTasksFindCreditAtAnyNode(t *testing.T) {
	fleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *testFleet) {
		w := f.work(f.nodes["c"], "mail", 1000)
		for _, at := range f.nodes {
			w.enqueue(at, "mail", at.name, 100, 0)
		}
		w.done(5 * time.Millisecond)
	})
}

func TestNeverMoreThanMaxInFlightAcrossNodes(t *testing.T) {
	fleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *testFleet) {
		at := f.nodes["a"].sys
		o := &stream{t: t}
		sub, err := at.Subscribe(t.Context(), SubscribeOptions{Topic: "mail", Worker: "w", MaxInFlight: 7}, o)
		if err != nil {
			t.Fatal(err)
		}
		o.sub = sub
		w := &ledger{stream: o, due: map[string]store.Millis{}, seen: map[string]int{}, last: map[string]Delivery{}}
		w.enqueue(f.nodes["b"], "mail", "t", 100, 0)
		for range 20 {
			if err := sub.Grant(7); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		got := o.take()
		if len(got) != 7 {
			t.Fatalf("got %d deliveries, want 7", len(got))
		}
		for i := 0; len(got) > 0; i++ {
			if len(got) > 7 {
				t.Errorf("%d in flight", len(got))
			}
			for _, d := range got {
				o.settle(SettleAck, d)
				delete(w.due, d.Task.ID)
			}
			synctest.Wait()
			_ = sub.Grant(len(got))
			time.Sleep(time.Millisecond)
			got = o.take()
		}
		if len(w.due) > 0 {
			t.Errorf("%d tasks wait while there is credit", len(w.due))
		}
	})
}

func TestJoinMovesShardsWithoutLoss(t *testing.T) {
	fleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *testFleet) {
		w := f.work(f.nodes["a"], "mail", 1000)
		w.enqueue(f.nodes["b"], "mail", "t", 1000, 2*time.Second)
		w.run(500 * time.Millisecond)
		f.join("c")
		w.run(1500 * time.Millisecond)
		w.done(250 * time.Millisecond)
		count := map[string]int{}
		for _, owner := range f.owners("mail") {
			count[owner]++
		}
		if count["c"] == 0 {
			t.Errorf("shards by node: %v", count)
		}
	})
}

func TestDrainHandsShardsOver(t *testing.T) {
	fleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *testFleet) {
		w := f.work(f.nodes["a"], "mail", 1000)
		w.enqueue(f.nodes["b"], "mail", "t", 1000, 2*time.Second)
		w.run(500 * time.Millisecond)
		if err := f.nodes["a"].sys.DrainNode(t.Context(), "b", true); err != nil {
			t.Fatal(err)
		}
		w.run(1500 * time.Millisecond)
		w.done(250 * time.Millisecond)
		for n, owner := range f.owners("mail") {
			if owner == "b" || owner == "" {
				t.Errorf("shard %d is owned by %q", n, owner)
			}
		}
		if err := f.nodes["c"].sys.DrainNode(t.Context(), "b", false); err != nil {
			t.Fatal(err)
		}
		w.enqueue(f.nodes["a"], "mail", "u", 1000, time.Second)
		w.run(time.Second)
		w.done(250 * time.Millisecond)
	})
}

func TestStopHandsShardsOver(t *testing.T) {
	fleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *testFleet) {
		w := f.work(f.nodes["a"], "mail", 1000)
		w.enqueue(f.nodes["b"], "mail", "t", 1000, 2*time.Second)
		w.run(500 * time.Millisecond)
		go func() {
			if err := f.nodes["b"].sys.Stop(t.Context()); err != nil {
				t.Error(err)
			}
			f.edit(func() { f.nodes["b"].gone = true })
		}()
		w.run(1500 * time.Millisecond)
		w.done(250 * time.Millisecond)
	})
}

func TestCrashCostsAtMostTheLease(t *testing.T) {
	fleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *testFleet) {
		w := f.work(f.nodes["a"], "mail", 5000)
		w.enqueue(f.nodes["c"], "mail", "t", 1000, 2*time.Second)
		w.run(500 * time.Millisecond)
		f.kill(f.nodes["b"])
		w.run(4 * time.Second)
		w.done(3 * time.Second)
	})
}

func TestFrozenOwnerChangesNothingWhenItWakes(t *testing.T) {
	fleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *testFleet) {
		b := f.nodes["b"]
		w := f.work(f.nodes["a"], "mail", 5000)
		w.enqueue(f.nodes["c"], "mail", "t", 1000, 2*time.Second)
		w.run(500 * time.Millisecond)
		b.store.freeze(true)
		f.edit(func() { b.gone = true })
		w.run(30 * time.Second)
		if w.late > 3*time.Second {
			t.Errorf("late by %v while the owner was frozen", w.late)
		}
		b.store.freeze(false)
		f.edit(func() { b.gone = false })
		w.enqueue(f.nodes["a"], "mail", "u", 1000, time.Second)
		w.run(3 * time.Second)
		w.done(3 * time.Second)
	})
}

// The others see a node that cannot reach the store.
func TestNodeWithoutTheStoreLeavesItsShardsToTheOthers(t *testing.T) {
	fleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *testFleet) {
		b := f.nodes["b"]
		w := f.work(f.nodes["a"], "mail", 5000)
		idle := subscribeTo(t, b.sys, "mail", 5000) // takes its share of what comes
		time.Sleep(time.Second)
		idle.take()
		b.store.freeze(true)
		time.Sleep(5 * time.Second)
		idle.take()
		w.enqueue(f.nodes["c"], "mail", "t", 1000, 2*time.Second)
		w.run(2 * time.Second)
		w.done(20 * time.Millisecond)
		for n, owner := range f.owners("mail") {
			if owner == "b" {
				t.Errorf("shard %d is owned by b", n)
			}
		}
		if got := idle.take(); len(got) > 0 {
			t.Errorf("a worker of b has %d tasks, which it could not settle", len(got))
		}
		idle.sub.Unsubscribe(nil)
		b.store.freeze(false)
		w.run(2 * time.Second)
		if !slices.Contains(f.owners("mail"), "b") {
			t.Error("b owns nothing once it is back")
		}
		w.enqueue(f.nodes["c"], "mail", "u", 1000, time.Second)
		w.run(time.Second)
		w.done(250 * time.Millisecond)
	})
}

func TestDrainedNodeStaysDrainedWhenItsStoreIsBack(t *testing.T) {
	fleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *testFleet) {
		b := f.nodes["b"]
		f.work(f.nodes["a"], "mail", 10)
		if err := f.nodes["a"].sys.DrainNode(t.Context(), "b", true); err != nil {
			t.Fatal(err)
		}
		for _, frozen := range []bool{true, false} {
			b.store.freeze(frozen)
			time.Sleep(10 * time.Second)
			if slices.Contains(f.owners("mail"), "b") {
				t.Errorf("b owns shards; frozen: %v", frozen)
			}
		}
	})
}

func TestNodesThatDoNotSeeEachOtherStaySafe(t *testing.T) {
	fleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *testFleet) {
		a, b := f.nodes["a"], f.nodes["b"]
		wa, wb := f.work(a, "mail", 1000), f.work(b, "mail", 1000)
		f.split(a, b, true)
		both := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Millisecond) {
				wa.takeIn()
				wb.takeIn()
			}
		}
		both(time.Second)
		for i := range 4 {
			wa.enqueue(a, "mail", fmt.Sprint("a", i), 100, time.Second)
			wb.enqueue(b, "mail", fmt.Sprint("b", i), 100, time.Second)
			both(30 * time.Second)
		}
		f.split(a, b, false)
		both(2 * time.Second)
		seen := map[string]int{}
		for id, n := range wa.seen {
			seen[id] += n
		}
		for id, n := range wb.seen {
			seen[id] += n
		}
		for i := range 4 {
			for k := range 100 {
				for _, id := range []string{fmt.Sprintf("a%d-%d", i, k), fmt.Sprintf("b%d-%d", i, k)} {
					if seen[id] != 1 {
						t.Errorf("%s was delivered %d times", id, seen[id])
					}
				}
			}
		}
	})
}

func TestLostNoticesCostAnInterval(t *testing.T) {
	fleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *testFleet) {
		w := f.work(f.nodes["a"], "mail", 5000)
		w.enqueue(f.nodes["a"], "mail", "warm", 10, 10*time.Millisecond)
		w.run(time.Second)
		f.mu.Lock()
		f.deaf = true
		f.mu.Unlock()
		for i, at := range []string{"a", "b", "c"} {
			w.enqueue(f.nodes[at], "mail", fmt.Sprint("t", i), 100, 100*time.Millisecond)
		}
		w.run(3 * time.Second)
		w.done(1500 * time.Millisecond)
	})
}

func TestLostSettleNoticesCostNothing(t *testing.T) {
	fleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *testFleet) {
		w := f.work(f.nodes["a"], "mail", 50)
		w.enqueue(f.nodes["a"], "mail", "t", 50, 50*time.Millisecond)
		time.Sleep(100 * time.Millisecond)
		f.mu.Lock()
		f.deaf = true
		f.mu.Unlock()
		w.run(time.Minute) // the owners think that the holds run out
		w.done(time.Second)
		f.mu.Lock()
		f.deaf = false
		f.mu.Unlock()
		w.enqueue(f.nodes["b"], "mail", "u", 500, time.Second)
		w.run(time.Second)
		w.done(20 * time.Millisecond)
	})
}

func TestOneWayPartition(t *testing.T) {
	fleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *testFleet) {
		a, b := f.nodes["a"], f.nodes["b"]
		w := f.work(a, "mail", 1000)
		w.enqueue(a, "mail", "t", 500, time.Second)
		f.edit(func() { // what a says to b is lost; b still sees a
			f.cut[[2]string{"a", "b"}] = true
			a.blind["b"] = true
			a.breakLinks("b")
		})
		w.run(30 * time.Second) // b owns shards that a does not see served, and c passes nothing on
		f.edit(func() {
			f.cut[[2]string{"a", "b"}] = false
			a.blind["b"] = false
		})
		w.run(30 * time.Second)
		w.late = 0 // tasks of b's shards waited for the way to b
		w.enqueue(b, "mail", "u", 500, time.Second)
		w.run(time.Second)
		w.done(20 * time.Millisecond)
	})
}

func TestWorkerMovesAndSettlesAtAnotherNode(t *testing.T) {
	fleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *testFleet) {
		first := f.work(f.nodes["a"], "mail", 20)
		first.enqueue(f.nodes["b"], "mail", "t", 20, 0)
		time.Sleep(10 * time.Millisecond)
		held := first.take()
		if len(held) != 20 {
			t.Fatalf("got %d deliveries, want 20", len(held))
		}
		first.sub.Unsubscribe(nil)
		second := f.work(f.nodes["c"], "mail", 20)
		for _, d := range held {
			second.settle(SettleAck, d)
		}
		for _, s := range second.takeSettled() {
			if s.Err != nil {
				t.Errorf("%s: %v", s.ID, s.Err)
			}
		}
		time.Sleep(time.Minute) // the holds would have run out
		if again := second.take(); len(again) > 0 {
			t.Errorf("%d tasks came again", len(again))
		}
	})
}

func TestTasksPurgedElsewhereAreForgotten(t *testing.T) {
	fleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *testFleet) {
		w := f.work(f.nodes["a"], "mail", 0)
		w.enqueue(f.nodes["b"], "mail", "t", 120, 10*time.Second)
		time.Sleep(5 * time.Second) // half of them are ready
		if n, err := f.nodes["c"].sys.PurgeTopic(t.Context(), "mail"); n != 120 || err != nil {
			t.Fatalf("purged %d, %v", n, err)
		}
		time.Sleep(time.Minute)
		nodes, err := f.nodes["a"].sys.Nodes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range nodes {
			for _, s := range n.Load.Shards {
				if s.Ready+s.Wheel > 0 {
					t.Errorf("%s still knows of tasks: %+v", n.Name, s)
				}
			}
		}
		clear(w.due)
		_ = w.sub.Grant(100)
		w.enqueue(f.nodes["b"], "mail", "u", 60, time.Second)
		w.run(time.Second)
		w.done(20 * time.Millisecond)
	})
}

func TestTopicDeletedElsewhereIsClosed(t *testing.T) {
	fleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *testFleet) {
		a := f.nodes["a"].sys
		w := f.work(f.nodes["a"], "mail", 10)
		w.enqueue(f.nodes["b"], "mail", "t", 10, 0)
		w.run(100 * time.Millisecond)
		if err := a.DeleteTopic(t.Context(), "mail", true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if _, err := a.CreateTopic(t.Context(), "mail", TopicChange{Shards: new(3)}); err != nil {
			t.Fatal(err)
		}
		again := f.work(f.nodes["b"], "mail", 10)
		again.enqueue(f.nodes["a"], "mail", "t", 10, 0)
		again.run(100 * time.Millisecond)
		again.done(time.Second)
		if n := len(f.owners("mail")); n != 3 {
			t.Errorf("%d shards", n)
		}
	})
}

func TestShardsAreDescribed(t *testing.T) {
	fleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *testFleet) {
		w := f.work(f.nodes["a"], "mail", 0)
		w.enqueue(f.nodes["b"], "mail", "t", 120, 0)
		time.Sleep(time.Second)
		nodes, err := f.nodes["c"].sys.Nodes(t.Context())
		if err != nil || len(nodes) != 3 {
			t.Fatalf("nodes: %v, %v", nodes, err)
		}
		owned := 0
		for _, n := range nodes {
			if n.Load == nil || n.Self != (n.Name == "c") {
				t.Errorf("node %+v", n)
				continue
			}
			owned += len(n.Load.Shards)
		}
		if owned != 12 {
			t.Errorf("%d shards are owned, want 12", owned)
		}
		var shards []ShardStatus
		for token := ""; ; {
			page, next, err := f.nodes["b"].sys.Shards(t.Context(), "mail", 5, token)
			if err != nil {
				t.Fatal(err)
			}
			shards = append(shards, page...)
			if token = next; next == "" {
				break
			}
		}
		ready := int64(0)
		for n, s := range shards {
			ready += s.Depth.Ready
			if s.N != n || s.Owner == "" || s.Owner != s.Placed || s.Load == nil || s.Load.Lateness < time.Second {
				t.Errorf("shard %+v load %+v", s, s.Load)
			}
		}
		if len(shards) != 12 || ready != 120 {
			t.Errorf("%d shards with %d ready", len(shards), ready)
		}
		moves, err := f.nodes["a"].sys.Plan(t.Context(), []string{"b"})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range moves {
			if m.From != "b" || m.To == "b" || m.To == "" {
				t.Errorf("move %+v", m)
			}
		}
		if moves, _ := f.nodes["a"].sys.Plan(t.Context(), nil); len(moves) != 0 {
			t.Errorf("nothing should move, got %v", moves)
		}
	})
}

// Deliveries are on their way for a third of their hold, and then for two thirds.
func TestHoldsCountFromWhenTheyWereTaken(t *testing.T) {
	fleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *testFleet) {
		w := f.work(f.nodes["a"], "mail", 100)
		hop := func(prefix string, lag time.Duration) (late int) {
			f.edit(func() { f.lag = lag })
			begun := time.Now()
			w.enqueue(f.nodes["b"], "mail", prefix, 24, 0)
			time.Sleep(time.Millisecond)
			f.edit(func() { f.lag = 0 })
			time.Sleep(lag)
			w.run(10 * time.Millisecond)
			for id, d := range w.last {
				if end := d.Deadline.Time(); strings.HasPrefix(id, prefix) && d.HoldFor < 25*time.Second {
					late++
					if limit := begun.Add(30*time.Second + 10*time.Millisecond); end.After(limit) {
						t.Errorf("%s: the worker may believe in the hold %v too long", id, end.Sub(limit))
					}
				}
			}
			w.done(lag + 10*time.Millisecond)
			return late
		}
		if hop("third", 10*time.Second) == 0 {
			t.Error("nothing was delivered late")
		}
		if late := hop("most", 20*time.Second); late > 0 {
			t.Errorf("%d tasks were delivered with a third of their hold left", late)
		}
	})
}

// A look that finds tasks in a quiet shard, whose window is behind, comes before the
// answer of the call that added them.
func TestQuietEndsWithALookThatFindsTasks(t *testing.T) {
	fleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *testFleet) {
		w := f.work(f.nodes["a"], "mail", 1000)
		time.Sleep(time.Minute)
		for n := range f.owners("mail") {
			for _, node := range f.nodes {
				node.sys.toShard(store.Shard{Topic: "mail", N: n}, &seqSeen{seq: 0})
			}
		}
		w.enqueue(f.nodes["a"], "mail", "t", 100, time.Second)
		w.run(2 * time.Second)
		w.done(20 * time.Millisecond)
	})
}
