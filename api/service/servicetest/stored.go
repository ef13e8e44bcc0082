package servicetest

import (
	"testing/synctest"

	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/store"
)

// SetBack makes a topic what it was, as a failover of the store does that lost what
// was written since.
func (f *Fleet) SetBack(was store.Topic) {
	f.Helper()
	synctest.Wait() // no node looks meanwhile
	if err := f.Store.DeleteTopic(f.Context(), was.Name, was.Life); err != nil {
		f.Fatal(err)
	}
	t := was
	for t.Version = 0; t.Version < was.Version; {
		var err error
		if t, err = f.Store.PutTopic(f.Context(), t); err != nil {
			f.Fatal(err)
		}
	}
}

// Pause stops or resumes deliveries.
func (f *Fleet) Pause(at, topic string, paused bool) store.Topic {
	f.Helper()
	t, err := f.Nodes[at].Sys.Topics.Configure(f.Context(), topic, service.TopicChange{DeliveryPaused: &paused})
	if err != nil {
		f.Fatal(err)
	}
	return t
}

// Config is what a node goes by.
func (n *Node) Config(topic string) store.Topic {
	n.fleet.Helper()
	ref, open := n.Sys.Node().Topics().Opened(topic)
	if !open {
		n.fleet.Fatalf("node %s has not opened %s", n.Name, topic)
	}
	return *ref.Config()
}
