package actors

import (
	"sync/atomic"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/store"
)

// The cap of a namespace is one more cap of each of its topics, under a key of the namespace in the store. What a
// node knows of a topic says how high it is, beside what the store keeps of the topic.

// MaxHeld says how many tasks of a namespace are held at a time, over all nodes; 0: any number. It does not wait.
type MaxHeld func(namespace string) int

// NamespaceCaps says how high the caps of namespaces are. The zero value has none. It is safe for concurrent use.
type NamespaceCaps struct{ of atomic.Pointer[MaxHeld] }

// Set says how high they are. Topics that are open follow when they are looked at next.
func (c *NamespaceCaps) Set(of MaxHeld) { c.of.Store(&of) }

// With is how many tasks are held at a time in the namespace of a topic; 0: any number.
func (c *NamespaceCaps) With(topic string) int {
	of := c.of.Load()
	if of == nil {
		return 0
	}
	namespace, _ := store.SplitName(topic)
	return (*of)(namespace)
}

// Bounded is a topic that the store has, under the cap of its namespace.
func (c *NamespaceCaps) Bounded(t store.Topic) store.Topic {
	t.Limits.Namespace = c.With(t.Name)
	return t
}

// tellFreed tells a topic, if it is open, that something may be there of limits that it waits for.
func tellFreed(all *Topics, n fleet.FreedNotice) {
	if ref, open := all.Opened(n.Topic); open {
		all.rt.Send(ref.pid, &limitsFreed{n.Keys, n.RateKeys})
	}
}
