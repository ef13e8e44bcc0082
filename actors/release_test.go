package actors

import (
	"testing"
	"time"
)

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
