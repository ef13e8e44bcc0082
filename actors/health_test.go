package actors_test

import (
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
)

// TestActorThatStopsToPanicIsWell has an actor panic at every message for minutes: all the
// while the node has failed. What made it panic passes, and so does the failure.
func TestActorThatStopsToPanicIsWell(t *testing.T) {
	servicetest.FaultBubble(t, actors.Config{Topic: store.Topic{Shards: 1}}, func(t *testing.T, s *service.Service, _ *servicetest.FaultyStore) {
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "before", 24*time.Hour))
		n := s.Node()
		panicFor := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Second) {
				panicTopic(s, "mail")
			}
		}
		panicFor(10 * time.Second)
		if err := n.Failed(); err != nil {
			t.Fatalf("after some panics: %v", err)
		}
		panicFor(time.Minute)
		for range 5 {
			if n.Failed() == nil || n.Ready() == nil {
				t.Fatalf("while an actor panics without end: failed %v, ready %v", n.Failed(), n.Ready())
			}
			panicFor(time.Minute)
		}
		time.Sleep(30 * time.Second)
		if n.Failed() == nil {
			t.Fatal("it is well before it had time to show that it is")
		}
		time.Sleep(time.Hour) // what waited in the mailbox has panicked, too
		if n.Failed() != nil || n.Ready() != nil {
			t.Fatalf("after an hour without a panic: failed %v, ready %v", n.Failed(), n.Ready())
		}
		checkRoom(t, s, subscribeFew(t, s, "mail", 4), 3)
	})
}
