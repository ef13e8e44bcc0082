package actors_test

import (
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
)

// TestReleaseThatFailsIsRepeated: a claim that stays, of a node that lives and does not
// want the shard, keeps everybody else from it.
func TestReleaseThatFailsIsRepeated(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		w := f.Work(f.Nodes["a"], "mail", 1000)
		w.Enqueue(f.Nodes["a"], "mail", "t", 200, 4*time.Second)
		f.Nodes["b"].Store.Refuse(10)
		if err := f.Nodes["a"].Sys.Fleet.Drain(t.Context(), "b", true); err != nil {
			t.Fatal(err)
		}
		w.Run(5 * time.Second)
		w.Done(3 * time.Second)
		for n, owner := range f.Owners("mail") {
			if owner != "a" {
				t.Errorf("shard %d is owned by %q", n, owner)
			}
		}
	})
}

// TestClaimOfALostLeaseIsReleased: a node that could not reach the store, and is not to
// own its shards any more when it can, leaves them to the others.
func TestClaimOfALostLeaseIsReleased(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		a, b := f.Nodes["a"], f.Nodes["b"]
		w := f.Work(a, "mail", 1000)
		w.Enqueue(a, "mail", "t", 200, 10*time.Second)
		a.Store.Freeze(true)
		b.Store.Freeze(true)
		time.Sleep(3 * time.Second)
		if err := b.Sys.Fleet.Drain(t.Context(), "b", true); err != nil {
			t.Fatal(err)
		}
		b.Store.Freeze(false) // its session is alive again before anybody can claim
		time.Sleep(2 * time.Second)
		a.Store.Freeze(false)
		w.Run(8 * time.Second)
		w.Done(10 * time.Second)
		for n, owner := range f.Owners("mail") {
			if owner != "a" {
				t.Errorf("shard %d is owned by %q", n, owner)
			}
		}
	})
}

func TestReleasedShardComesBack(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		w := f.Work(f.Nodes["a"], "mail", 100)
		before := f.Owners("mail")
		shard := store.Shard{Topic: "mail", N: 3}
		if err := f.Nodes["a"].Sys.Fleet.Release(t.Context(), shard); err != nil {
			t.Fatal(err)
		}
		w.Enqueue(f.Nodes["b"], "mail", "t", 500, 500*time.Millisecond)
		w.Run(500 * time.Millisecond)
		w.Done(250 * time.Millisecond)
		if after := f.Owners("mail"); after[3] != before[3] {
			t.Errorf("shard 3 went from %s to %s", before[3], after[3])
		}
	})
}

// A failover can undo a release, and the answer to a claim can be lost for good: then
// the store has an owner that does not know of it.
func TestShardOfAnOwnerThatDoesNotKnowIsReleased(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a"}, func(t *testing.T, f *servicetest.Fleet) {
		w := f.Work(f.Nodes["a"], "mail", 100)
		was := f.Store.Clone()
		b := f.Join("b")
		time.Sleep(time.Second)
		session := b.Sys.Node().Session()
		session.Begin = true
		if _, err := was.RenewSession(t.Context(), session); err != nil {
			t.Fatal(err)
		}
		f.Store.Restore(was) // every shard is a's again
		w.Enqueue(b, "mail", "t", 100, time.Second)
		w.Run(12 * time.Second)
		w.Done(10 * time.Second)
	})
}
