package subscription

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"

	"github.com/ddq-io/ddq/store"
)

// BodyOverhead is counted for a task besides its body.
const BodyOverhead = 256

// BodyBytes is what a task out of the store counts.
func BodyBytes(t *store.Task) int64 { return int64(BodyOverhead + t.BodySize()) }

// BodySize is the mean size of the bodies of a topic, as far as this node has seen
// them: how many a Hold returns is known before it is called, how large they are is not.
type BodySize struct{ Mean atomic.Int64 }

// unseenSize is assumed until the first body was seen: few are asked for then.
const unseenSize = 64 << 10

// sizeMemory is after how many bodies half of the mean is theirs.
const sizeMemory = 16

// Get is the mean, in bytes.
func (s *BodySize) Get() int64 { return cmp.Or(s.Mean.Load(), unseenSize) }

// Learn records n bodies of so many bytes together. Of concurrent calls one may be
// lost.
func (s *BodySize) Learn(n, bytes int64) {
	if n == 0 {
		return
	}
	seen, mean := s.Mean.Load(), bytes/n
	if seen != 0 {
		mean = (seen*sizeMemory + bytes) / (sizeMemory + n)
	}
	s.Mean.Store(max(mean, 1))
}

// NodeBudget bounds the bodies that are out of the store and not sent, of all
// subscriptions of a node together.
type NodeBudget struct {
	Most   int64
	Unsent atomic.Int64 // bytes, with an estimate for those that are assigned
	Gauge  interface{ Add(float64) }
}

func (n *NodeBudget) add(bytes int64) {
	if bytes != 0 {
		n.Unsent.Add(bytes)
		n.Gauge.Add(float64(bytes))
	}
}

// Budget bounds the bodies of one subscription that are out of the store and not
// sent. A consumer that does not read so costs a number of bytes, whatever its credit.
//
// As long as there is any room one more task may be taken, whatever its size: the
// budget is exceeded by one body at most, as far as the sizes are known, and no task
// is too large for it. A subscription may use no more than what the node has left, so
// many that do not read leave room for others.
//
// It is shared: the topic assigns, shards hold, the stream sends. The methods of a nil
// budget do nothing.
type Budget struct {
	Most int64
	Node *NodeBudget
	Size *BodySize
	Wake func() // there is room again

	Assigned atomic.Int64 // tasks that are neither held nor refunded yet; written with mu
	Unsent   atomic.Int64 // bytes
	blocked  atomic.Bool  // a task may wait for room: wake is to be called

	mu       sync.Mutex
	reserved int64         // bytes that the node counts for assigned tasks; guarded by mu, as below
	roomy    chan struct{} // closed when there is room, for wait
	closed   bool          // nobody is to wait any more
}

// limit is the bytes that the subscription may have unsent now, at least 1.
func (b *Budget) limit() int64 {
	return max(1, min(b.Most, b.Node.Most-b.Node.Unsent.Load()))
}

// Full reports whether nothing more may be held now.
func (b *Budget) Full() bool { return b != nil && b.Unsent.Load() >= b.limit() }

// Room is how many more tasks of the usual size may be assigned. When it is none,
// wake is called once there is some.
func (b *Budget) Room() int {
	n := b.left()
	if n == 0 && !b.blocked.Swap(true) {
		n = b.left() // bytes that were sent meanwhile woke nobody
	}
	return n
}

func (b *Budget) left() int {
	mean := b.Size.Get()
	left := b.limit() - b.Unsent.Load() - b.Assigned.Load()*mean
	if left <= 0 {
		return 0
	}
	return int((left + mean - 1) / mean)
}

// Take records that n tasks were assigned.
func (b *Budget) Take(n int) {
	bytes := int64(n) * b.Size.Get()
	b.mu.Lock()
	b.Assigned.Add(int64(n))
	b.reserved += bytes
	b.mu.Unlock()
	b.Node.add(bytes)
}

// Landed records that n assigned tasks are held, or are not going to be.
func (b *Budget) Landed(n int) {
	if b == nil {
		return
	}
	b.mu.Lock()
	all := b.Assigned.Load()
	k := min(int64(n), all)
	bytes := b.reserved
	if k < all {
		bytes = bytes / all * k
	}
	b.Assigned.Store(all - k)
	b.reserved -= bytes
	b.mu.Unlock()
	b.Node.add(-bytes)
}

// Charge records bytes of bodies that came out of the store.
func (b *Budget) Charge(bytes int64) {
	if b != nil {
		b.Unsent.Add(bytes)
		b.Node.add(bytes)
	}
}

// Sent records bytes that are gone: sent, or given back.
func (b *Budget) Sent(bytes int64) {
	if b == nil || bytes == 0 {
		return
	}
	left := b.Unsent.Add(-bytes)
	b.Node.add(-bytes)
	if left > b.limit()/2 {
		return // room for a few tasks is not worth a turn
	}
	if b.blocked.CompareAndSwap(true, false) {
		b.Wake()
	}
	b.Open(false)
}

// Discard records that held tasks are not going to be sent.
func (b *Budget) Discard(tasks []HeldTask) {
	bytes := int64(0)
	for i := range tasks {
		bytes += BodyBytes(tasks[i].Task)
	}
	b.Sent(bytes)
}

// End lets go of everything: the subscription is over, and nothing refers to its bodies.
func (b *Budget) End() {
	b.Landed(int(b.Assigned.Load()))
	b.Node.add(-b.Unsent.Swap(0))
	b.Open(true)
}

// Open lets those go on that wait; for good when nobody is to wait any more.
func (b *Budget) Open(forGood bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = b.closed || forGood
	if b.roomy != nil {
		close(b.roomy)
		b.roomy = nil
	}
}

// Wait returns once there is room, when the subscription is over, or with ctx.
func (b *Budget) Wait(ctx context.Context) {
	for b.Full() {
		b.mu.Lock()
		if b.closed {
			b.mu.Unlock()
			return
		}
		if b.roomy == nil {
			b.roomy = make(chan struct{})
		}
		roomy := b.roomy
		b.mu.Unlock()
		if !b.Full() {
			return
		}
		select {
		case <-roomy:
		case <-ctx.Done():
			return
		}
	}
}
