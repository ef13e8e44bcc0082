package actors_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
)

// accepted puts ten tasks into a topic by each of some nodes, and returns how many they took.
func accepted(t *testing.T, f *servicetest.Fleet, what string, nodes ...string) (n int) {
	t.Helper()
	for i := range 10 {
		for _, name := range nodes {
			out := servicetest.EnqueueOne(t, f.Nodes[name].Sys, servicetest.After("mail", fmt.Sprint(what, name, i), 5*time.Second))
			if out.Err != nil {
				t.Errorf("enqueue at %s: %v", name, out.Err)
				continue
			}
			n++
		}
	}
	return n
}

// delivered takes tasks of the topic until none comes any more, and returns how many came.
func delivered(t *testing.T, f *servicetest.Fleet) (n int) {
	t.Helper()
	w := servicetest.Subscribe(t, f.Nodes["a"].Sys, "mail", 100)
	servicetest.Idle(20 * time.Second)
	n = len(w.Take())
	w.Sub.Unsubscribe(nil)
	return n
}

// meetsTheEnd runs a test on two nodes that have a topic open, of which a
// has deleted it a moment ago, and b has not heard of that.
func meetsTheEnd(t *testing.T, test func(f *servicetest.Fleet)) {
	t.Helper()
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		accepted(t, f, "old", "b", "a")
		servicetest.Idle(3 * time.Second)
		if err := f.Nodes["a"].Sys.Topics.Delete(t.Context(), "mail", true); err != nil {
			t.Fatal(err)
		}
		test(f)
	})
}

// A node that has not heard that a topic was deleted creates it anew for the tasks that it gets.
func TestTasksOfADeletedTopicAreNotStranded(t *testing.T) {
	meetsTheEnd(t, func(f *servicetest.Fleet) {
		count := accepted(f.T, f, "new", "b")
		servicetest.Idle(3 * time.Second)
		if _, err := f.Store.GetTopic(f.Context(), "mail"); err != nil {
			f.Errorf("%d tasks were accepted for: %v", count, err)
		}
		if got := delivered(f.T, f); got != count {
			f.Errorf("%d tasks were accepted, %d delivered", count, got)
		}
	})
}

func TestADeletedTopicIsUnknownEverywhereAtOnce(t *testing.T) {
	meetsTheEnd(t, func(f *servicetest.Fleet) {
		b := f.Nodes["b"].Sys
		b.Node().Config().NoAutoCreate = true
		if out := servicetest.EnqueueOne(f.T, b, servicetest.After("mail", "a", 0)); out.Err == nil || out.Err.Reason != "NO_TOPIC" {
			f.Errorf("enqueue: %v", out.Err)
		}
	})
}

// A topic that is created anew takes tasks at once, and every node has them where the
// others look.
func TestATopicIsCreatedAnewWithOtherShards(t *testing.T) {
	for _, shards := range []int{1, 12, 20} {
		t.Run(fmt.Sprint(shards), func(t *testing.T) {
			meetsTheEnd(t, func(f *servicetest.Fleet) {
				a, b := f.Nodes["a"].Sys, f.Nodes["b"].Sys
				if _, err := a.Topics.Create(f.Context(), "mail", service.TopicChange{Shards: &shards}); err != nil {
					f.Fatal(err)
				}
				count := accepted(f.T, f, "new", "b", "a")
				for i := range 10 {
					again := servicetest.EnqueueOne(f.T, a, servicetest.After("mail", fmt.Sprint("newb", i), 5*time.Second))
					if !again.Deduplicated {
						f.Errorf("task %d was stored by b where a does not look: %+v", i, again)
					}
				}
				if topic := openTopic(b, "mail"); topic.Shards != shards {
					f.Errorf("b has the topic open with %d shards", topic.Shards)
				}
				if got := delivered(f.T, f); got != count {
					f.Errorf("%d tasks were accepted, %d delivered", count, got)
				}
			})
		})
	}
}

func openTopic(s *service.Service, name string) store.Topic {
	ref, _ := s.Node().Topics().Opened(name)
	return *ref.Config()
}

// Whoever creates a topic may die before its shards are open.
func TestATopicWhoseCreatorDied(t *testing.T) {
	meetsTheEnd(t, func(f *servicetest.Fleet) {
		if _, err := f.Store.PutTopic(f.Context(), store.Topic{Name: "mail", Life: 7, Shards: 12, MaxPayload: 100, MaxDelay: time.Hour, Visibility: time.Minute}); err != nil {
			f.Fatal(err)
		}
		count := accepted(f.T, f, "new", "b", "a")
		if got := delivered(f.T, f); got != count {
			f.Errorf("%d tasks were accepted, %d delivered", count, got)
		}
	})
}

// A failover of the store can undo a deletion, where the shards lie on other primaries.
func TestADeletionIsUndone(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		accepted(t, f, "old", "b", "a")
		topic := openTopic(f.Nodes["a"].Sys, "mail")
		if err := f.Nodes["a"].Sys.Topics.Delete(t.Context(), "mail", true); err != nil {
			t.Fatal(err)
		}
		topic.Version = 0
		if _, err := f.Store.PutTopic(t.Context(), topic); err != nil {
			t.Fatal(err)
		}
		count := accepted(t, f, "new", "b", "a")
		if got := delivered(t, f); got != count {
			t.Errorf("%d tasks were accepted, %d delivered", count, got)
		}
	})
}

// A topic of which only the catalog lost all, as in a failover of the store, leaves tasks behind;
// those that other nodes accepted meanwhile are in the next topic of the name.
func TestATopicThatTheCatalogLost(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		accepted(t, f, "old", "b", "a")
		if err := f.Store.DeleteTopic(t.Context(), "mail", openTopic(f.Nodes["a"].Sys, "mail").Life); err != nil {
			t.Fatal(err)
		}
		accepted(t, f, "meanwhile", "b", "a")
		servicetest.Idle(3 * time.Second)
		accepted(t, f, "new", "b", "a")
		if got := delivered(t, f); got != 60 {
			t.Errorf("60 tasks were accepted, %d delivered", got)
		}
	})
}

// Another node accepts tasks between any two steps of a deletion, and makes the topic again as
// soon as it can. It comes upon none of the tasks of before.
func TestATopicThatIsMadeAgainWhileItIsDeleted(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		accepted(t, f, "old", "b", "a")
		a, b, steps := f.Nodes["a"], f.Nodes["b"], 0
		a.Store.OnDelete(func(bool) error {
			steps++
			accepted(t, f, fmt.Sprint("meanwhile", steps), "b")
			return nil
		})
		if err := a.Sys.Topics.Delete(t.Context(), "mail", true); err != nil {
			t.Fatal(err)
		}
		a.Store.OnDelete(nil)
		w := servicetest.Subscribe(t, b.Sys, "mail", 1000)
		servicetest.Idle(20 * time.Second)
		for _, d := range w.Take() {
			if strings.HasPrefix(d.Task.ID, "old") {
				t.Errorf("%s is in the topic that was made again", d.Task.ID)
			}
		}
	})
}

// Two nodes delete a topic, and one of them makes it again before the other goes on.
func TestTwoDeletionsAtOnce(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		accepted(t, f, "old", "b", "a")
		a, b, count := f.Nodes["a"], f.Nodes["b"], 0
		a.Store.OnDelete(func(topic bool) error {
			if !topic {
				return nil
			}
			if err := b.Sys.Topics.Delete(t.Context(), "mail", true); err != nil {
				t.Fatal(err)
			}
			count = accepted(t, f, "new", "b")
			return nil
		})
		if err := a.Sys.Topics.Delete(t.Context(), "mail", true); servicetest.ReasonOf(err) != "NO_TOPIC" {
			t.Errorf("the later one ended with %v", err)
		}
		a.Store.OnDelete(nil)
		if got := delivered(t, f); got != count {
			t.Errorf("%d tasks were accepted after the deletion, %d delivered", count, got)
		}
	})
}
