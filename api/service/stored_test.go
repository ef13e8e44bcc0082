package service_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

func TestUndoneChangeIsTakenIn(t *testing.T) {
	for name, later := range map[string]int{"with a lower version": 0, "with the same version": 1, "with a higher version": 2} {
		t.Run(name, func(t *testing.T) {
			servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
				w := f.Work(f.Nodes["b"], "mail", 100)
				w.Enqueue(f.Nodes["a"], "mail", "first", 20, 2*time.Second)
				w.Run(3 * time.Second)
				was := f.Pause("a", "mail", false)
				paused := f.Pause("a", "mail", true)
				servicetest.Idle(2 * time.Second)
				was.Version += int64(later)
				was.MaxBacklog = 100_000 + later
				f.SetBack(was)
				w.Enqueue(f.Nodes["a"], "mail", "second", 20, 2*time.Second)
				w.Run(5 * time.Second)
				w.Done(2 * time.Second) // as any change
				for name, n := range f.Nodes {
					if got := n.Config("mail"); got.Version != was.Version || got.MaxBacklog != was.MaxBacklog || got.DeliveryPaused {
						t.Errorf("node %s goes by version %d, paused %v: the store says %d, after %d", name, got.Version, got.DeliveryPaused, was.Version, paused.Version)
					}
				}
			})
		})
	}
}

// TestUndoneReshardIsMadeAgain: the store forgets which shards new tasks went to, but not
// the tasks, as when topics and shards lie on different primaries, or not even that the
// former shards are sealed.
func TestUndoneReshardIsMadeAgain(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		w := f.Work(f.Nodes["b"], "mail", 1000)
		w.Enqueue(f.Nodes["a"], "mail", "before", 50, 20*time.Second)
		w.Run(time.Second)
		was, err := f.Store.GetTopic(t.Context(), "mail")
		if err != nil {
			t.Fatal(err)
		}
		f.Reshard(f.Nodes["a"], "mail", 5)
		w.Enqueue(f.Nodes["c"], "mail", "there", 50, 10*time.Second)
		w.Run(2 * time.Second)
		f.SetBack(was)
		for i, name := range []string{"c", "b", "a"} { // at any moment of their looks
			w.Run(137 * time.Millisecond)
			w.Enqueue(f.Nodes[name], "mail", fmt.Sprint("after", i), 50, 5*time.Second)
		}
		w.Run(2 * time.Second)
		got, err := f.Store.GetTopic(t.Context(), "mail")
		if want := (store.Span{First: was.End(), Shards: 5}); err != nil || got.Active() != want || got.Former[0] != was.Active() {
			t.Errorf("the topic has shards %+v and before %+v (%v)", got.Active(), got.Former, err)
		}
		w.Run(30 * time.Second)
		w.Done(250 * time.Millisecond)
		if again := f.Reshard(f.Nodes["c"], "mail", 3); again.First != got.End() {
			t.Errorf("the next generation begins with %d", again.First)
		}
	})
}

func TestUndoneRetirementIsTakenIn(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		w := f.Work(f.Nodes["b"], "mail", 100)
		w.Enqueue(f.Nodes["a"], "mail", "before", 50, time.Second)
		w.Run(100 * time.Millisecond)
		was := f.Reshard(f.Nodes["a"], "mail", 5)
		w.Run(40 * time.Second)
		if got := f.Nodes["a"].Config("mail"); place.Resharding(&got) {
			t.Fatalf("the former shards are still there: %+v", got.Former)
		}
		f.SetBack(was)
		w.Run(2 * time.Second)
		if got := f.Nodes["a"].Config("mail"); got != was {
			t.Errorf("a node goes by %+v, the store says %+v", got, was)
		}
		w.Enqueue(f.Nodes["a"], "mail", "after", 50, time.Second)
		w.Run(40 * time.Second)
		w.Done(250 * time.Millisecond)
		if got := f.Nodes["b"].Config("mail"); place.Resharding(&got) {
			t.Errorf("the former shards were not retired again: %+v", got.Former)
		}
	})
}
