package actors

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"

	"github.com/ddq-io/ddq/store"
)

// bodyOverhead is counted for a task besides its body.
const bodyOverhead = 256

// bodyBytes is what a task out of the store counts.
func bodyBytes(t *store.Task) int64 { return int64(bodyOverhead + t.BodySize()) }

// bodySize is the mean size of the bodies of a topic, as far as this node has seen
// them: how many a Hold returns is known before it is called, how large they are is not.
type bodySize struct{ mean atomic.Int64 }

// unseenSize is assumed until the first body was seen: few are asked for then.
const unseenSize = 64 << 10

// sizeMemory is after how many bodies half of the mean is theirs.
const sizeMemory = 16

func (s *bodySize) get() int64 { return cmp.Or(s.mean.Load(), unseenSize) }

// learn records n bodies of so many bytes together. Of concurrent calls one may be
// lost.
func (s *bodySize) learn(n, bytes int64) {
	if n == 0 {
		return
	}
	seen, mean := s.mean.Load(), bytes/n
	if seen != 0 {
		mean = (seen*sizeMemory + bytes) / (sizeMemory + n)
	}
	s.mean.Store(max(mean, 1))
}

// nodeBudget bounds the bodies that are out of the store and not sent, of all
// subscriptions of a node together.
type nodeBudget struct {
	most   int64
	unsent atomic.Int64 // bytes, with an estimate for those that are assigned
	gauge  interface{ Add(float64) }
}

func (n *nodeBudget) add(bytes int64) {
	if bytes != 0 {
		n.unsent.Add(bytes)
		n.gauge.Add(float64(bytes))
	}
}

// budget bounds the bodies of one subscription that are out of the store and not
// sent. A consumer that does not read so costs a number of bytes, whatever its credit.
//
// As long as there is any room one more task may be taken, whatever its size: the
// budget is exceeded by one body at most, as far as the sizes are known, and no task
// is too large for it. A subscription may use no more than what the node has left, so
// many that do not read leave room for others.
//
// It is shared: the topic assigns, shards hold, the stream sends. The methods of a nil
// budget do nothing.
type budget struct {
	most int64
	node *nodeBudget
	size *bodySize
	wake func() // there is room again

	assigned atomic.Int64 // tasks that are neither held nor refunded yet; written with mu
	unsent   atomic.Int64 // bytes
	blocked  atomic.Bool  // a task may wait for room: wake is to be called

	mu       sync.Mutex
	reserved int64         // bytes that the node counts for assigned tasks; guarded by mu, as below
	roomy    chan struct{} // closed when there is room, for wait
	closed   bool          // nobody is to wait any more
}

// limit is the bytes that the subscription may have unsent now, at least 1.
func (b *budget) limit() int64 {
	return max(1, min(b.most, b.node.most-b.node.unsent.Load()))
}

// full reports whether nothing more may be held now.
func (b *budget) full() bool { return b != nil && b.unsent.Load() >= b.limit() }

// Room is how many more tasks of the usual size may be assigned. When it is none,
// wake is called once there is some.
func (b *budget) Room() int {
	n := b.left()
	if n == 0 && !b.blocked.Swap(true) {
		n = b.left() // bytes that were sent meanwhile woke nobody
	}
	return n
}

func (b *budget) left() int {
	mean := b.size.get()
	left := b.limit() - b.unsent.Load() - b.assigned.Load()*mean
	if left <= 0 {
		return 0
	}
	return int((left + mean - 1) / mean)
}

// Take records that n tasks were assigned.
func (b *budget) Take(n int) {
	bytes := int64(n) * b.size.get()
	b.mu.Lock()
	b.assigned.Add(int64(n))
	b.reserved += bytes
	b.mu.Unlock()
	b.node.add(bytes)
}

// Landed records that n assigned tasks are held, or are not going to be.
func (b *budget) Landed(n int) {
	if b == nil {
		return
	}
	b.mu.Lock()
	all := b.assigned.Load()
	k := min(int64(n), all)
	bytes := b.reserved
	if k < all {
		bytes = bytes / all * k
	}
	b.assigned.Store(all - k)
	b.reserved -= bytes
	b.mu.Unlock()
	b.node.add(-bytes)
}

// charge records bytes of bodies that came out of the store.
func (b *budget) charge(bytes int64) {
	if b != nil {
		b.unsent.Add(bytes)
		b.node.add(bytes)
	}
}

// sent records bytes that are gone: sent, or given back.
func (b *budget) sent(bytes int64) {
	if b == nil || bytes == 0 {
		return
	}
	left := b.unsent.Add(-bytes)
	b.node.add(-bytes)
	if left > b.limit()/2 {
		return // room for a few tasks is not worth a turn
	}
	if b.blocked.CompareAndSwap(true, false) {
		b.wake()
	}
	b.open(false)
}

// discard records that held tasks are not going to be sent.
func (b *budget) discard(tasks []heldTask) {
	bytes := int64(0)
	for i := range tasks {
		bytes += bodyBytes(tasks[i].task)
	}
	b.sent(bytes)
}

// end lets go of everything: the subscription is over, and nothing refers to its bodies.
func (b *budget) end() {
	b.Landed(int(b.assigned.Load()))
	b.node.add(-b.unsent.Swap(0))
	b.open(true)
}

// open lets those go on that wait; for good when nobody is to wait any more.
func (b *budget) open(forGood bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = b.closed || forGood
	if b.roomy != nil {
		close(b.roomy)
		b.roomy = nil
	}
}

// wait returns once there is room, when the subscription is over, or with ctx.
func (b *budget) wait(ctx context.Context) {
	for b.full() {
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
		if !b.full() {
			return
		}
		select {
		case <-roomy:
		case <-ctx.Done():
			return
		}
	}
}
