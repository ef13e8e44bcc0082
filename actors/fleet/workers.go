package fleet

import "github.com/ddq-io/ddq/store"

// MaxWorkers is how many workers a node lists at once: a page, and whether there are more.
const MaxWorkers = 1001

// WorkersQuery asks for workers of a node, by topic and age.
type WorkersQuery struct {
	Topic string // every topic when empty
	Scope string // the namespace whose topics are meant; every one when empty
	After WorkerKey
	Most  int // 1 to MaxWorkers
}

// Means reports whether q asks for workers of a topic.
func (q *WorkersQuery) Means(topic string) bool {
	namespace, _ := store.SplitName(topic)
	return (q.Topic == "" || q.Topic == topic) && (q.Scope == "" || q.Scope == namespace)
}

// WorkerKey is the place of a worker in the order of its node. The zero one is before all.
type WorkerKey struct {
	Topic  string
	Number int64 // rises with every subscription of the node
}

// Worker is a subscription of a worker at a node.
type Worker struct {
	WorkerKey
	Name        string
	Since       store.Millis
	InFlight    int // tasks that were found for it and are not settled
	Credit      int // tasks that it will take beyond those
	MaxInFlight int
	Client      string // user agent of its program
}
