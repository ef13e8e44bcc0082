package actors

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/store"
)

// setBack makes a topic what it was, as a failover of the store does that lost what
// was written since.
func (f *testFleet) setBack(was store.Topic) {
	f.Helper()
	synctest.Wait() // no node looks meanwhile
	if err := f.store.DeleteTopic(f.Context(), was.Name); err != nil {
		f.Fatal(err)
	}
	t := was
	for t.Version = 0; t.Version < was.Version; {
		var err error
		if t, err = f.store.PutTopic(f.Context(), t); err != nil {
			f.Fatal(err)
		}
	}
}

// pause stops or resumes deliveries.
func (f *testFleet) pause(at, topic string, paused bool) store.Topic {
	f.Helper()
	t, err := f.nodes[at].sys.ConfigureTopic(f.Context(), topic, TopicChange{DeliveryPaused: &paused})
	if err != nil {
		f.Fatal(err)
	}
	return t
}

func TestUndoneChangeIsTakenIn(t *testing.T) {
	for name, later := range map[string]int{"with a lower version": 0, "with the same version": 1, "with a higher version": 2} {
		t.Run(name, func(t *testing.T) {
			fleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *testFleet) {
				w := f.work(f.nodes["b"], "mail", 100)
				w.enqueue(f.nodes["a"], "mail", "first", 20, 2*time.Second)
				w.run(3 * time.Second)
				was := f.pause("a", "mail", false)
				paused := f.pause("a", "mail", true)
				idle(2 * time.Second)
				was.Version += int64(later)
				was.MaxBacklog = 100_000 + later
				f.setBack(was)
				w.enqueue(f.nodes["a"], "mail", "second", 20, 2*time.Second)
				w.run(5 * time.Second)
				w.done(2 * time.Second) // as any change
				for name, n := range f.nodes {
					if got := n.config("mail"); got.Version != was.Version || got.MaxBacklog != was.MaxBacklog || got.DeliveryPaused {
						t.Errorf("node %s goes by version %d, paused %v: the store says %d, after %d", name, got.Version, got.DeliveryPaused, was.Version, paused.Version)
					}
				}
			})
		})
	}
}

// config is what a node goes by.
func (n *testNode) config(topic string) store.Topic {
	n.fleet.Helper()
	ref, open := n.sys.topics.Load(topic)
	if !open {
		n.fleet.Fatalf("node %s has not opened %s", n.name, topic)
	}
	return *ref.(*topicRef).config.Load()
}

// TestUndoneReshardIsMadeAgain: the store forgets which shards new tasks went to, but not
// the tasks, as when topics and shards lie on different primaries, or not even that the
// former shards are sealed.
func TestUndoneReshardIsMadeAgain(t *testing.T) {
	fleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *testFleet) {
		w := f.work(f.nodes["b"], "mail", 1000)
		w.enqueue(f.nodes["a"], "mail", "before", 50, 20*time.Second)
		w.run(time.Second)
		was, err := f.store.GetTopic(t.Context(), "mail")
		if err != nil {
			t.Fatal(err)
		}
		f.reshard(f.nodes["a"], "mail", 5)
		w.enqueue(f.nodes["c"], "mail", "there", 50, 10*time.Second)
		w.run(2 * time.Second)
		f.setBack(was)
		for i, name := range []string{"c", "b", "a"} { // at any moment of their looks
			w.run(137 * time.Millisecond)
			w.enqueue(f.nodes[name], "mail", fmt.Sprint("after", i), 50, 5*time.Second)
		}
		w.run(2 * time.Second)
		got, err := f.store.GetTopic(t.Context(), "mail")
		if want := (store.Span{First: was.End(), Shards: 5}); err != nil || got.Active() != want || got.Former[0] != was.Active() {
			t.Errorf("the topic has shards %+v and before %+v (%v)", got.Active(), got.Former, err)
		}
		w.run(30 * time.Second)
		w.done(250 * time.Millisecond)
		if again := f.reshard(f.nodes["c"], "mail", 3); again.First != got.End() {
			t.Errorf("the next generation begins with %d", again.First)
		}
	})
}

func TestUndoneRetirementIsTakenIn(t *testing.T) {
	fleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *testFleet) {
		w := f.work(f.nodes["b"], "mail", 100)
		w.enqueue(f.nodes["a"], "mail", "before", 50, time.Second)
		w.run(100 * time.Millisecond)
		was := f.reshard(f.nodes["a"], "mail", 5)
		w.run(40 * time.Second)
		if got := f.nodes["a"].config("mail"); resharding(&got) {
			t.Fatalf("the former shards are still there: %+v", got.Former)
		}
		f.setBack(was)
		w.run(2 * time.Second)
		if got := f.nodes["a"].config("mail"); got != was {
			t.Errorf("a node goes by %+v, the store says %+v", got, was)
		}
		w.enqueue(f.nodes["a"], "mail", "after", 50, time.Second)
		w.run(40 * time.Second)
		w.done(250 * time.Millisecond)
		if got := f.nodes["b"].config("mail"); resharding(&got) {
			t.Errorf("the former shards were not retired again: %+v", got.Former)
		}
	})
}

func TestWhatAnUndoneReshardLeaves(t *testing.T) {
	type spans = [store.MaxFormer]store.Span
	topic := func(life uint64, first, shards int, former ...store.Span) store.Topic {
		t := store.Topic{Life: life, First: first, Shards: shards}
		copy(t.Former[:], former)
		return t
	}
	for name, tt := range map[string]struct {
		was, stored store.Topic
		undone      bool
		former      spans
	}{
		"the same":                        {was: topic(1, 3, 2), stored: topic(1, 3, 2)},
		"a later one":                     {was: topic(1, 3, 2), stored: topic(1, 5, 4)},
		"the one before":                  {was: topic(1, 3, 2, store.Span{Shards: 3}), stored: topic(1, 0, 3), undone: true, former: spans{{Shards: 3}}},
		"one that was retired":            {was: topic(1, 3, 2), stored: topic(1, 0, 3), undone: true, former: spans{{Shards: 3}}},
		"two before":                      {was: topic(1, 5, 4, store.Span{First: 3, Shards: 2}), stored: topic(1, 0, 3), undone: true, former: spans{{Shards: 3}, {First: 3, Shards: 2}}},
		"created anew":                    {was: topic(1, 3, 2), stored: topic(2, 0, 3)},
		"another reshard took its number": {was: topic(1, 3, 2), stored: topic(1, 3, 4)},
		"and more of them": {
			was: topic(1, 7, 2, store.Span{First: 3, Shards: 4}), stored: topic(1, 3, 2, store.Span{Shards: 3}),
		},
		"too many": {
			was:    topic(1, 4, 1, store.Span{First: 1, Shards: 1}, store.Span{First: 2, Shards: 1}, store.Span{First: 3, Shards: 1}),
			stored: topic(1, 3, 1, store.Span{Shards: 1}, store.Span{First: 1, Shards: 1}, store.Span{First: 2, Shards: 1}),
		},
	} {
		got, undone := restored(&tt.was, &tt.stored)
		if undone != tt.undone || got.Former != tt.former || undone && got.Active() != tt.was.Active() {
			t.Errorf("%s: %v, %+v, want %v, %+v", name, undone, got.Former, tt.undone, tt.former)
		}
	}
}
