package service_test

import (
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/service/servicetest"
)

// unseen cuts a node off from both others, which like it go on to reach the store.
func unseen(f *servicetest.Fleet, name string, apart bool) {
	for other, n := range f.Nodes {
		if other != name {
			f.Split(f.Nodes[name], n, apart)
		}
	}
}

// TestShardsOfANodeThatNobodySeesGoToWorkers has the workers where the owner of some shards
// cannot be seen: its lease lasts, as it reaches the store.
func TestShardsOfANodeThatNobodySeesGoToWorkers(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		w := f.Work(f.Nodes["b"], "mail", 1000)
		w.Enqueue(f.Nodes["b"], "mail", "before", 100, 0)
		w.Run(time.Second)
		unseen(f, "a", true)
		w.Enqueue(f.Nodes["b"], "mail", "cut", 300, 2*time.Second)
		w.Enqueue(f.Nodes["a"], "mail", "at-a", 300, 2*time.Second)
		w.Run(10 * time.Second)
		w.Done(10 * time.Second)
		for n, owner := range f.Owners("mail") {
			if owner == "a" {
				t.Errorf("shard %d is owned by a, which has no worker and no way to one", n)
			}
		}
		unseen(f, "a", false)
		w.Enqueue(f.Nodes["a"], "mail", "after", 300, 0)
		w.Run(5 * time.Second)
		w.Done(2 * time.Second)
		back := 0
		for _, owner := range f.Owners("mail") {
			if owner == "a" {
				back++
			}
		}
		if back == 0 {
			t.Error("a got no shard back once it was seen again")
		}
	})
}

// TestShardsStayOnBothSidesThatHaveWorkers counts claims: where each side delivers what it owns,
// nothing moves.
func TestShardsStayOnBothSidesThatHaveWorkers(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		w := f.Work(f.Nodes["b"], "mail", 1000)
		other := f.Work(f.Nodes["a"], "mail", 1000)
		w.Enqueue(f.Nodes["b"], "mail", "before", 100, 0)
		w.Run(time.Second)
		unseen(f, "a", true)
		before := f.Epochs("mail")
		for range 12 {
			w.Run(2500 * time.Millisecond)
			other.Run(2500 * time.Millisecond)
		}
		if after := f.Epochs("mail"); after != before {
			t.Errorf("%d claims in a minute of a cut with workers on both sides", after-before)
		}
	})
}
