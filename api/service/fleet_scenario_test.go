package service_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/nodes"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
)

func TestNodesShareTheShards(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		w := f.Work(f.Nodes["a"], "mail", 100)
		count := map[string]int{}
		for _, owner := range f.Owners("mail") {
			count[owner]++
		}
		if len(count) != 3 || count[""] > 0 {
			t.Errorf("shards by node: %v", count)
		}
		for _, at := range f.Nodes {
			w.Enqueue(at, "mail", at.Name, 200, time.Second)
		}
		w.Run(time.Second)
		w.Done(5 * time.Millisecond)
	})
}

func TestImmediateTasksFindCreditAtAnyNode(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		w := f.Work(f.Nodes["c"], "mail", 1000)
		for _, at := range f.Nodes {
			w.Enqueue(at, "mail", at.Name, 100, 0)
		}
		w.Done(5 * time.Millisecond)
	})
}

func TestNeverMoreThanMaxInFlightAcrossNodes(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		at := f.Nodes["a"].Sys
		o := &servicetest.Stream{T: t}
		sub, err := at.Delivery.Subscribe(t.Context(), subscription.Options{Topic: "mail", Worker: "w", MaxInFlight: 7}, o)
		if err != nil {
			t.Fatal(err)
		}
		o.Sub = sub
		w := &servicetest.Ledger{Stream: o, Due: map[string]store.Millis{}, Seen: map[string]int{}, Last: map[string]subscription.Delivery{}}
		w.Enqueue(f.Nodes["b"], "mail", "t", 100, 0)
		for range 20 {
			if err := sub.Grant(7); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		got := o.Take()
		if len(got) != 7 {
			t.Fatalf("got %d deliveries, want 7", len(got))
		}
		for i := 0; len(got) > 0; i++ {
			if len(got) > 7 {
				t.Errorf("%d in flight", len(got))
			}
			for _, d := range got {
				o.Settle(subscription.SettleAck, d)
				delete(w.Due, d.Task.ID)
			}
			synctest.Wait()
			_ = sub.Grant(len(got))
			time.Sleep(time.Millisecond)
			got = o.Take()
		}
		if len(w.Due) > 0 {
			t.Errorf("%d tasks wait while there is credit", len(w.Due))
		}
	})
}

func TestJoinMovesShardsWithoutLoss(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		w := f.Work(f.Nodes["a"], "mail", 1000)
		w.Enqueue(f.Nodes["b"], "mail", "t", 1000, 2*time.Second)
		w.Run(500 * time.Millisecond)
		f.Join("c")
		w.Run(1500 * time.Millisecond)
		w.Done(250 * time.Millisecond)
		count := map[string]int{}
		for _, owner := range f.Owners("mail") {
			count[owner]++
		}
		if count["c"] == 0 {
			t.Errorf("shards by node: %v", count)
		}
	})
}

func TestDrainHandsShardsOver(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		w := f.Work(f.Nodes["a"], "mail", 1000)
		w.Enqueue(f.Nodes["b"], "mail", "t", 1000, 2*time.Second)
		w.Run(500 * time.Millisecond)
		if err := f.Nodes["a"].Sys.Fleet.Drain(t.Context(), "b", true); err != nil {
			t.Fatal(err)
		}
		w.Run(1500 * time.Millisecond)
		w.Done(250 * time.Millisecond)
		for n, owner := range f.Owners("mail") {
			if owner == "b" || owner == "" {
				t.Errorf("shard %d is owned by %q", n, owner)
			}
		}
		if err := f.Nodes["c"].Sys.Fleet.Drain(t.Context(), "b", false); err != nil {
			t.Fatal(err)
		}
		w.Enqueue(f.Nodes["a"], "mail", "u", 1000, time.Second)
		w.Run(time.Second)
		w.Done(250 * time.Millisecond)
	})
}

func TestStopHandsShardsOver(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		w := f.Work(f.Nodes["a"], "mail", 1000)
		w.Enqueue(f.Nodes["b"], "mail", "t", 1000, 2*time.Second)
		w.Run(500 * time.Millisecond)
		go func() {
			if err := f.Nodes["b"].Sys.Node().Stop(t.Context()); err != nil {
				t.Error(err)
			}
			f.Edit(func() { f.Nodes["b"].Gone = true })
		}()
		w.Run(1500 * time.Millisecond)
		w.Done(250 * time.Millisecond)
	})
}

func TestCrashCostsAtMostTheLease(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		w := f.Work(f.Nodes["a"], "mail", 5000)
		w.Enqueue(f.Nodes["c"], "mail", "t", 1000, 2*time.Second)
		w.Run(500 * time.Millisecond)
		f.Kill(f.Nodes["b"])
		w.Run(4 * time.Second)
		w.Done(3 * time.Second)
	})
}

func TestFrozenOwnerChangesNothingWhenItWakes(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		b := f.Nodes["b"]
		w := f.Work(f.Nodes["a"], "mail", 5000)
		w.Enqueue(f.Nodes["c"], "mail", "t", 1000, 2*time.Second)
		w.Run(500 * time.Millisecond)
		b.Store.Freeze(true)
		f.Edit(func() { b.Gone = true })
		w.Run(30 * time.Second)
		if w.Late > 3*time.Second {
			t.Errorf("late by %v while the owner was frozen", w.Late)
		}
		b.Store.Freeze(false)
		f.Edit(func() { b.Gone = false })
		w.Enqueue(f.Nodes["a"], "mail", "u", 1000, time.Second)
		w.Run(3 * time.Second)
		w.Done(3 * time.Second)
	})
}

// The others see a node that cannot reach the store.
func TestNodeWithoutTheStoreLeavesItsShardsToTheOthers(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		b := f.Nodes["b"]
		w := f.Work(f.Nodes["a"], "mail", 5000)
		idle := servicetest.Subscribe(t, b.Sys, "mail", 5000) // takes its share of what comes
		time.Sleep(time.Second)
		idle.Take()
		b.Store.Freeze(true)
		time.Sleep(5 * time.Second)
		idle.Take()
		w.Enqueue(f.Nodes["c"], "mail", "t", 1000, 2*time.Second)
		w.Run(2 * time.Second)
		w.Done(20 * time.Millisecond)
		for n, owner := range f.Owners("mail") {
			if owner == "b" {
				t.Errorf("shard %d is owned by b", n)
			}
		}
		if got := idle.Take(); len(got) > 0 {
			t.Errorf("a worker of b has %d tasks, which it could not settle", len(got))
		}
		idle.Sub.Unsubscribe(nil)
		b.Store.Freeze(false)
		w.Run(10 * time.Second) // all shards that are b's move back: one on its way would be late
		if !slices.Contains(f.Owners("mail"), "b") {
			t.Error("b owns nothing once it is back")
		}
		w.Enqueue(f.Nodes["c"], "mail", "u", 1000, time.Second)
		w.Run(time.Second)
		w.Done(250 * time.Millisecond)
	})
}

func TestDrainedNodeStaysDrainedWhenItsStoreIsBack(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		b := f.Nodes["b"]
		f.Work(f.Nodes["a"], "mail", 10)
		if err := f.Nodes["a"].Sys.Fleet.Drain(t.Context(), "b", true); err != nil {
			t.Fatal(err)
		}
		for _, frozen := range []bool{true, false} {
			b.Store.Freeze(frozen)
			time.Sleep(10 * time.Second)
			if slices.Contains(f.Owners("mail"), "b") {
				t.Errorf("b owns shards; frozen: %v", frozen)
			}
		}
	})
}

func TestNodesThatDoNotSeeEachOtherStaySafe(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		a, b := f.Nodes["a"], f.Nodes["b"]
		wa, wb := f.Work(a, "mail", 1000), f.Work(b, "mail", 1000)
		f.Split(a, b, true)
		both := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Millisecond) {
				wa.TakeIn()
				wb.TakeIn()
			}
		}
		both(time.Second)
		for i := range 4 {
			wa.Enqueue(a, "mail", fmt.Sprint("a", i), 100, time.Second)
			wb.Enqueue(b, "mail", fmt.Sprint("b", i), 100, time.Second)
			both(30 * time.Second)
		}
		f.Split(a, b, false)
		both(2 * time.Second)
		seen := map[string]int{}
		for id, n := range wa.Seen {
			seen[id] += n
		}
		for id, n := range wb.Seen {
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
	servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		w := f.Work(f.Nodes["a"], "mail", 5000)
		w.Enqueue(f.Nodes["a"], "mail", "warm", 10, 10*time.Millisecond)
		w.Run(time.Second)
		f.Mu.Lock()
		f.Deaf = true
		f.Mu.Unlock()
		for i, at := range []string{"a", "b", "c"} {
			w.Enqueue(f.Nodes[at], "mail", fmt.Sprint("t", i), 100, 100*time.Millisecond)
		}
		w.Run(3 * time.Second)
		w.Done(1500 * time.Millisecond)
	})
}

func TestLostSettleNoticesCostNothing(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		w := f.Work(f.Nodes["a"], "mail", 50)
		w.Enqueue(f.Nodes["a"], "mail", "t", 50, 50*time.Millisecond)
		time.Sleep(100 * time.Millisecond)
		f.Mu.Lock()
		f.Deaf = true
		f.Mu.Unlock()
		w.Run(time.Minute) // the owners think that the holds run out
		w.Done(time.Second)
		f.Mu.Lock()
		f.Deaf = false
		f.Mu.Unlock()
		w.Enqueue(f.Nodes["b"], "mail", "u", 500, time.Second)
		w.Run(time.Second)
		w.Done(20 * time.Millisecond)
	})
}

func TestOneWayPartition(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		a, b := f.Nodes["a"], f.Nodes["b"]
		w := f.Work(a, "mail", 1000)
		w.Enqueue(a, "mail", "t", 500, time.Second)
		f.Edit(func() { // what a says to b is lost; b still sees a
			f.Cut[[2]string{"a", "b"}] = true
			a.Blind["b"] = true
			a.BreakLinks("b")
		})
		w.Run(30 * time.Second) // b owns shards that a does not see served, and c passes nothing on
		f.Edit(func() {
			f.Cut[[2]string{"a", "b"}] = false
			a.Blind["b"] = false
		})
		w.Run(30 * time.Second)
		w.Late = 0 // tasks of b's shards waited for the way to b
		w.Enqueue(b, "mail", "u", 500, time.Second)
		w.Run(time.Second)
		w.Done(20 * time.Millisecond)
	})
}

func TestWorkerMovesAndSettlesAtAnotherNode(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		first := f.Work(f.Nodes["a"], "mail", 20)
		first.Enqueue(f.Nodes["b"], "mail", "t", 20, 0)
		time.Sleep(10 * time.Millisecond)
		held := first.Take()
		if len(held) != 20 {
			t.Fatalf("got %d deliveries, want 20", len(held))
		}
		first.Sub.Unsubscribe(nil)
		second := f.Work(f.Nodes["c"], "mail", 20)
		for _, d := range held {
			second.Settle(subscription.SettleAck, d)
		}
		for _, s := range second.TakeSettled() {
			if s.Err != nil {
				t.Errorf("%s: %v", s.ID, s.Err)
			}
		}
		time.Sleep(time.Minute) // the holds would have run out
		if again := second.Take(); len(again) > 0 {
			t.Errorf("%d tasks came again", len(again))
		}
	})
}

func TestTasksPurgedElsewhereAreForgotten(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		w := f.Work(f.Nodes["a"], "mail", 0)
		w.Enqueue(f.Nodes["b"], "mail", "t", 120, 10*time.Second)
		time.Sleep(5 * time.Second) // half of them are ready
		if done, err := f.Nodes["c"].Sys.Topics.Purge(t.Context(), "mail"); done.Deleted != 120 || err != nil {
			t.Fatalf("purged %+v, %v", done, err)
		}
		time.Sleep(time.Minute)
		nodes, err := f.Nodes["a"].Sys.Fleet.Nodes(t.Context())
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
		clear(w.Due)
		_ = w.Sub.Grant(100)
		w.Enqueue(f.Nodes["b"], "mail", "u", 60, time.Second)
		w.Run(time.Second)
		w.Done(20 * time.Millisecond)
	})
}

func TestTopicDeletedElsewhereIsClosed(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		a := f.Nodes["a"].Sys
		w := f.Work(f.Nodes["a"], "mail", 10)
		w.Enqueue(f.Nodes["b"], "mail", "t", 10, 0)
		w.Run(100 * time.Millisecond)
		if err := a.Topics.Delete(t.Context(), "mail", true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if _, err := a.Topics.Create(t.Context(), "mail", service.TopicChange{Shards: new(3)}); err != nil {
			t.Fatal(err)
		}
		again := f.Work(f.Nodes["b"], "mail", 10)
		again.Enqueue(f.Nodes["a"], "mail", "t", 10, 0)
		again.Run(100 * time.Millisecond)
		again.Done(time.Second)
		if n := len(f.Owners("mail")); n != 3 {
			t.Errorf("%d shards", n)
		}
	})
}

func TestShardsAreDescribed(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		w := f.Work(f.Nodes["a"], "mail", 0)
		w.Enqueue(f.Nodes["b"], "mail", "t", 120, 0)
		time.Sleep(time.Second)
		members, err := f.Nodes["c"].Sys.Fleet.Nodes(t.Context())
		if err != nil || len(members) != 3 {
			t.Fatalf("nodes: %v, %v", members, err)
		}
		owned := 0
		for _, n := range members {
			if n.Load == nil || n.Self != (n.Name == "c") {
				t.Errorf("node %+v", n)
				continue
			}
			owned += len(n.Load.Shards)
		}
		if owned != 12 {
			t.Errorf("%d shards are owned, want 12", owned)
		}
		var shards []nodes.ShardStatus
		for token := ""; ; {
			page, next, err := f.Nodes["b"].Sys.Fleet.Shards(t.Context(), "mail", 5, token)
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
			if s.N != n || s.Owner == "" || s.Owner != s.Placed || s.Load == nil || s.Late < time.Second {
				t.Errorf("shard %+v load %+v", s, s.Load)
			}
		}
		if len(shards) != 12 || ready != 120 {
			t.Errorf("%d shards with %d ready", len(shards), ready)
		}
		moves, err := f.Nodes["a"].Sys.Fleet.Plan(t.Context(), []string{"b"})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range moves {
			if m.From != "b" || m.To == "b" || m.To == "" {
				t.Errorf("move %+v", m)
			}
		}
		if moves, _ := f.Nodes["a"].Sys.Fleet.Plan(t.Context(), nil); len(moves) != 0 {
			t.Errorf("nothing should move, got %v", moves)
		}
	})
}

// Deliveries are on their way for a third of their hold, and then for two thirds.
func TestHoldsCountFromWhenTheyWereTaken(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		w := f.Work(f.Nodes["a"], "mail", 100)
		hop := func(prefix string, lag time.Duration) (late int) {
			f.Edit(func() { f.Lag = lag })
			begun := time.Now()
			w.Enqueue(f.Nodes["b"], "mail", prefix, 24, 0)
			time.Sleep(time.Millisecond)
			f.Edit(func() { f.Lag = 0 })
			time.Sleep(lag)
			w.Run(10 * time.Millisecond)
			for id, d := range w.Last {
				if end := d.Deadline.Time(); strings.HasPrefix(id, prefix) && d.HoldFor < 25*time.Second {
					late++
					if limit := begun.Add(30*time.Second + 10*time.Millisecond); end.After(limit) {
						t.Errorf("%s: the worker may believe in the hold %v too long", id, end.Sub(limit))
					}
				}
			}
			w.Done(lag + 10*time.Millisecond)
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
