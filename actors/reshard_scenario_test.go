package actors

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/store"
)

func (f *testFleet) reshard(at *testNode, topic string, shards int) store.Topic {
	f.Helper()
	t, err := at.sys.Reshard(f.Context(), topic, shards)
	if err != nil {
		f.Fatal(err)
	}
	return t
}

// idle lets fake time pass.
func idle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestReshardUnderTraffic(t *testing.T) {
	fleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *testFleet) {
		w := f.work(f.nodes["b"], "mail", 2000)
		nodes := []string{"a", "b", "c"}
		for i, shards := range []int{12, 30, 4, 4, 7} {
			f.reshard(f.nodes[nodes[i%3]], "mail", shards)
			for k := range 20 { // the others hear of it meanwhile
				w.enqueue(f.nodes[nodes[k%3]], "mail", fmt.Sprintf("n%d-%d", i, k), 20, 300*time.Millisecond)
				w.enqueue(f.nodes[nodes[k%3]], "mail", fmt.Sprintf("s%d-%d", i, k), 5, 30*time.Second)
				w.run(5 * time.Millisecond)
			}
			w.run(time.Second)
			if w.late > 250*time.Millisecond {
				t.Errorf("a reshard to %d made tasks late by %v", shards, w.late)
			}
			w.run(40 * time.Second)
		}
		w.done(250 * time.Millisecond)
		got, err := f.store.GetTopic(t.Context(), "mail")
		if err != nil || got.Shards != 7 || resharding(&got) {
			t.Errorf("the topic is %+v: %v", got, err)
		}
		for n, owner := range f.owners("mail") {
			if owner == "" {
				t.Errorf("shard %d has no owner", n)
			}
		}
	})
}

func TestIDsStayUniqueOverAReshard(t *testing.T) {
	fleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *testFleet) {
		a, b := f.nodes["a"].sys, f.nodes["b"].sys
		w := subscribeTo(t, b, "mail", 1)
		enqueueOne(t, a, after("mail", "running", 0))
		running := w.takeOne()
		for _, id := range []string{"due", "late", "gone"} {
			enqueueOne(t, a, after("mail", id, time.Hour))
		}
		enqueueOne(t, a, after("mail", "dead", 0))
		_ = w.sub.Grant(1)
		dead := w.takeOne()
		w.sub.Settle(2, []Settlement{{Kind: SettleNack, Permanent: true, ID: "dead", Token: dead.Token}})
		idle(time.Second)
		f.reshard(f.nodes["a"], "mail", 5)
		for _, at := range []*System{b, a} { // b has not heard of it
			for _, id := range []string{"due", "running"} {
				if r := enqueueOne(t, at, after("mail", id, map[string]time.Duration{"due": time.Hour}[id])); !r.Deduplicated {
					t.Errorf("%s was stored twice: %+v", id, r)
				}
			}
			other := after("mail", "due", 2*time.Hour)
			other.Task.Payload = []byte("another")
			got, err := at.Enqueue(t.Context(), []NewTask{other})
			if err != nil || got[0].Err == nil || got[0].Err.Reason != "ID_CONFLICT" {
				t.Errorf("another request under the id of a task: %+v, %v", got, err)
			}
		}
		if r := enqueueOne(t, b, after("mail", "dead", time.Hour)); r.Replaced != store.StateDead {
			t.Errorf("a dead letter was not replaced: %+v", r)
		}
		if n, missing, err := a.RequeueDead(t.Context(), "mail", []string{"dead"}, DeadFilter{}); n != 0 || len(missing) != 1 || err != nil {
			t.Errorf("requeued %d, missing %v: %v", n, missing, err)
		}
		if _, err := a.Delete(t.Context(), "", "gone"); err != nil {
			t.Error(err)
		}
		if _, err := a.Get(t.Context(), "mail", "gone"); err == nil {
			t.Error("a deleted task is still there")
		}
		if _, err := b.Reschedule(t.Context(), "mail", "late", When{Delay: time.Second}, 0); err != nil {
			t.Error(err)
		}
		w.settle(SettleAck, running)
		_ = w.sub.Grant(1)
		idle(1100 * time.Millisecond)
		if late := w.takeOne(); late.Task.ID != "late" {
			t.Errorf("got %s", late.Task.ID)
		}
		var listed []string
		for token := ""; ; {
			page, next, err := b.List(t.Context(), "mail", store.StateScheduled, 1, token)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range page {
				listed = append(listed, f.Task.ID)
			}
			if token = next; next == "" {
				break
			}
		}
		if slices.Sort(listed); !slices.Equal(listed, []string{"dead", "due"}) {
			t.Errorf("listed %v", listed)
		}
	})
}

func TestReshardGoesOnWithoutItsNode(t *testing.T) {
	fleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *testFleet) {
		w := f.work(f.nodes["b"], "mail", 100)
		w.enqueue(f.nodes["b"], "mail", "before", 50, 3*time.Second)
		topic, err := f.store.GetTopic(t.Context(), "mail")
		if err != nil {
			t.Fatal(err)
		}
		if err := startGeneration(&topic, 3); err != nil { // as far as a node came that died then
			t.Fatal(err)
		}
		if _, err := f.store.PutTopic(t.Context(), topic); err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			w.enqueue(f.nodes["ab"[i%2:i%2+1]], "mail", fmt.Sprint("t", i), 10, time.Second)
			w.run(200 * time.Millisecond)
		}
		w.run(5 * time.Second)
		w.done(250 * time.Millisecond)
	})
}

func TestReshardIsRefusedWhileThreeGenerationsHaveTasks(t *testing.T) {
	fleetBubble(t, []string{"a"}, func(t *testing.T, f *testFleet) {
		a := f.nodes["a"].sys
		for i := range 4 {
			enqueueOne(t, a, after("mail", fmt.Sprint("t", i), time.Hour))
			_, err := a.Reshard(t.Context(), "mail", 5+i)
			var e *Error
			if i < 3 && err != nil || i == 3 && (!errors.As(err, &e) || e.Reason != "RESHARD_PENDING") {
				t.Errorf("reshard %d: %v", i, err)
			}
		}
		for _, shards := range []int{0, -1, 257} {
			var e *Error
			if _, err := a.Reshard(t.Context(), "mail", shards); !errors.As(err, &e) || e.Field != "shards" {
				t.Errorf("%d shards: %v", shards, err)
			}
		}
		if _, err := a.Reshard(t.Context(), "none", 2); err == nil {
			t.Error("an unknown topic was resharded")
		}
		for i := range 3 {
			if _, err := a.Delete(t.Context(), "mail", fmt.Sprint("t", i)); err != nil {
				t.Error(err)
			}
		}
		idle(time.Minute)
		if topic := f.reshard(f.nodes["a"], "mail", 2); topic.Former[0].Shards != 7 || topic.Former[1].Shards != 0 {
			t.Errorf("the topic is %+v", topic)
		}
		if err := a.DeleteTopic(t.Context(), "mail", true); err != nil {
			t.Error(err)
		}
		enqueueOne(t, a, after("mail", "t0", time.Hour)) // into shards that were sealed in the topic before
		if found, err := a.Get(t.Context(), "mail", "t0"); err != nil || found.Topic != "mail" {
			t.Error(err)
		}
	})
}

func TestTasksOfUnknownShardsAreTakenIn(t *testing.T) {
	fleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *testFleet) {
		w := f.work(f.nodes["b"], "mail", 1000)
		f.edit(func() { f.deaf = true })
		f.reshard(f.nodes["a"], "mail", 40)
		w.enqueue(f.nodes["a"], "mail", "t", 200, 100*time.Millisecond) // those of a's shards come over the link
		w.run(200 * time.Millisecond)
		if len(w.seen) < 50 {
			t.Errorf("only %d tasks came from the new shards of the other node", len(w.seen))
		}
		w.run(2 * time.Second)
		w.done(2 * time.Second)
	})
}
