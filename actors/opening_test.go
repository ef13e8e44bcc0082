package actors

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/store"
)

// staleView is what a shard looks at while the node learns that there is another
// member.
type staleView struct {
	View
	learn func()
	once  *sync.Once
}

func (v staleView) Owner(store.Shard) string {
	v.once.Do(v.learn)
	return "a"
}

// A topic opens at the moment in which members change: its shards have looked at the
// members of before, and nobody knows the topic yet.
func TestTopicThatOpensDuringAJoinIsPlaced(t *testing.T) {
	fleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *testFleet) {
		synctest.Wait()
		a := f.nodes["a"].sys
		members := a.fleet.view.Load()
		a.fleet.view.Store(&fleetView{
			View: staleView{members, func() {
				a.fleet.view.Store(members)
				a.broadcast(&viewChanged{})
			}, new(sync.Once)},
			byName: members.byName, others: members.others,
		})
		if _, err := a.CreateTopic(t.Context(), "mail", TopicChange{Shards: new(64)}); err != nil {
			t.Fatal(err)
		}
		if _, err := a.topic(t.Context(), "mail", false); err != nil {
			t.Fatal(err)
		}
		w := f.work(f.nodes["b"], "mail", 100)
		w.enqueue(f.nodes["b"], "mail", "t", 300, time.Second)
		w.run(time.Second)
		w.done(250 * time.Millisecond)
		for n, owner := range f.owners("mail") {
			if placed := members.Owner(store.Shard{Topic: "mail", N: n}); owner != placed {
				t.Errorf("shard %d is owned by %q and placed on %q", n, owner, placed)
			}
		}
	})
}
