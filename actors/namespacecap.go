package actors

import (
	"strings"
	"sync/atomic"

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

// tellFreed tells a topic, if it is open, that permits of caps that it waits for may be free.
func tellFreed(all *Topics, topic string, keys []string) {
	if ref, open := all.Opened(topic); open {
		all.rt.Send(ref.pid, &permitsFree{inTurn: keys})
	}
}

// inLine is what a topic at a node is called in the line for permits of a cap. Caps of a topic have nodes in line.
// That of a namespace has topics at nodes, so that each of them has its turn.
func inLine(node, topic, key string) string {
	if key == store.NamespaceCap {
		return node + store.NamespaceCap + topic
	}
	return node
}

// fromLine returns whom a name in the line for a cap of a topic is of.
func fromLine(name, topic string) (node, of string) {
	if node, of, namespaced := strings.Cut(name, store.NamespaceCap); namespaced {
		return node, of
	}
	return name, topic
}
