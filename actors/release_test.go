package actors

import (
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
)

// TestReleaseThatFailsIsRepeated: a claim that stays, of a node that lives and does not
// want the shard, keeps everybody else from it.
func TestReleaseThatFailsIsRepeated(t *testing.T) {
	fleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *testFleet) {
		w := f.work(f.nodes["a"], "mail", 1000)
		w.enqueue(f.nodes["a"], "mail", "t", 200, 4*time.Second)
		f.nodes["b"].store.refuse(10)
		if err := f.nodes["a"].sys.DrainNode(t.Context(), "b", true); err != nil {
			t.Fatal(err)
		}
		w.run(5 * time.Second)
		w.done(3 * time.Second)
		for n, owner := range f.owners("mail") {
			if owner != "a" {
				t.Errorf("shard %d is owned by %q", n, owner)
			}
		}
	})
}

// TestClaimOfALostLeaseIsReleased: a node that could not reach the store, and is not to
// own its shards any more when it can, leaves them to the others.
func TestClaimOfALostLeaseIsReleased(t *testing.T) {
	fleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *testFleet) {
		a, b := f.nodes["a"], f.nodes["b"]
		w := f.work(a, "mail", 1000)
		w.enqueue(a, "mail", "t", 200, 10*time.Second)
		a.store.freeze(true)
		b.store.freeze(true)
		time.Sleep(3 * time.Second)
		if err := b.sys.DrainNode(t.Context(), "b", true); err != nil {
			t.Fatal(err)
		}
		b.store.freeze(false) // its session is alive again before anybody can claim
		time.Sleep(2 * time.Second)
		a.store.freeze(false)
		w.run(8 * time.Second)
		w.done(10 * time.Second)
		for n, owner := range f.owners("mail") {
			if owner != "a" {
				t.Errorf("shard %d is owned by %q", n, owner)
			}
		}
	})
}

func TestReleasedShardComesBack(t *testing.T) {
	fleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *testFleet) {
		w := f.work(f.nodes["a"], "mail", 100)
		before := f.owners("mail")
		shard := store.Shard{Topic: "mail", N: 3}
		if err := f.nodes["a"].sys.ReleaseShard(t.Context(), shard); err != nil {
			t.Fatal(err)
		}
		w.enqueue(f.nodes["b"], "mail", "t", 500, 500*time.Millisecond)
		w.run(500 * time.Millisecond)
		w.done(250 * time.Millisecond)
		if after := f.owners("mail"); after[3] != before[3] {
			t.Errorf("shard 3 went from %s to %s", before[3], after[3])
		}
	})
}

// A failover can undo a release, and the answer to a claim can be lost for good: then
// the store has an owner that does not know of it.
func TestShardOfAnOwnerThatDoesNotKnowIsReleased(t *testing.T) {
	fleetBubble(t, []string{"a"}, func(t *testing.T, f *testFleet) {
		w := f.work(f.nodes["a"], "mail", 100)
		was := f.store.Clone()
		b := f.join("b")
		time.Sleep(time.Second)
		session := b.sys.keeper.session()
		session.Begin = true
		if _, err := was.RenewSession(t.Context(), session); err != nil {
			t.Fatal(err)
		}
		f.store.Restore(was) // every shard is a's again
		w.enqueue(b, "mail", "t", 100, time.Second)
		w.run(12 * time.Second)
		w.done(10 * time.Second)
	})
}
