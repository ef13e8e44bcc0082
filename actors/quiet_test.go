package actors_test

import (
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
)

// A look that finds tasks in a quiet shard, whose window is behind, comes before the
// answer of the call that added them.
func TestQuietEndsWithALookThatFindsTasks(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		w := f.Work(f.Nodes["a"], "mail", 1000)
		time.Sleep(time.Minute)
		for n := range f.Owners("mail") {
			for _, node := range f.Nodes {
				node.Sys.Node().ShowSeq(store.Shard{Topic: "mail", N: n}, 0)
			}
		}
		w.Enqueue(f.Nodes["a"], "mail", "t", 100, time.Second)
		w.Run(2 * time.Second)
		w.Done(20 * time.Millisecond)
	})
}
