package relay

import (
	"time"

	"github.com/ddq-io/ddq/store"
)

const (
	queuesAtATime = 4 // of a shard
	backOffFirst  = 10 * time.Millisecond
	backOffLast   = time.Second
	walkAgain     = 5 * time.Second // that OldBox backs off at most: all that waits in it is read each time
)

// Ring says whose turn it is among the queues of a shard: a page each, in order. It has no clock, no goroutine
// and no I/O.
//
// Invariants:
//   - a queue that has something is ready, busy, backs off, or waits for its gate
//   - a queue is in flight once at most; what it is told meanwhile counts behind that
//   - a cursor is kept from turn to turn only while each one follows on the one before
type Ring struct {
	queues map[store.Queue]*turns
	ready  []store.Queue
	busy   int
}

// turns are those of a queue.
type turns struct {
	busy, ready bool
	again       bool         // it was woken while it was busy
	shut        bool         // it waits for its gate, and is woken by nothing else
	until       store.Millis // it backs off; 0: it does not
	wait        time.Duration
	after       int64
	walk        *Walk
	passed      int
	fresh       bool
}

// NewRing returns a ring without queues.
func NewRing() *Ring { return &Ring{queues: make(map[store.Queue]*turns)} }

// Wake makes a queue ready that has something, or may have.
func (r *Ring) Wake(q store.Queue) {
	t := r.queues[q]
	if t == nil {
		t = new(turns)
		r.queues[q] = t
	}
	switch {
	case t.busy:
		t.again = true
		return
	case t.until != 0 && q != OldBox(), t.shut: // more of what is refused makes it no sooner. In OldBox it may be of another topic
		return
	}
	r.makeReady(q, t)
}

// Open makes a queue ready whose gate lets something in.
func (r *Ring) Open(q store.Queue) {
	switch t := r.queues[q]; {
	case t == nil:
	case t.busy:
		t.again = true
	case t.shut:
		t.shut = false
		r.makeReady(q, t)
	}
}

func (r *Ring) makeReady(q store.Queue, t *turns) {
	if t.until = 0; !t.ready {
		t.ready = true
		r.ready = append(r.ready, q)
	}
}

// Next begins a turn, if one can. The fence and the topic of the shard are the caller's.
func (r *Ring) Next() (from Start, ok bool) {
	if len(r.ready) == 0 || r.busy == queuesAtATime {
		return from, false
	}
	q := r.ready[0]
	r.ready = r.ready[1:]
	t := r.queues[q]
	t.ready, t.busy, t.again = false, true, false
	r.busy++
	return Start{Queue: q, After: t.after, Walk: t.walk, Passed: t.passed, Fresh: t.fresh}, true
}

// Done ends a turn. jitter is from 0 to 1.
func (r *Ring) Done(o *Outcome, now store.Millis, jitter float64) {
	t := r.queues[o.Queue]
	if t == nil || !t.busy {
		return
	}
	t.busy, t.after, t.walk, t.passed, t.fresh = false, o.After, o.Walk, o.Passed, o.Closed
	r.busy--
	switch {
	case o.Err != nil, o.Left > 0 && o.After == 0 && (!t.again || o.Queue != OldBox()):
		last := backOffLast
		if o.Queue == OldBox() {
			last = walkAgain
		}
		t.wait = min(max(2*t.wait, backOffFirst), last)
		t.until = now.Add(t.wait/2 + time.Duration(jitter*float64(t.wait/2)) + time.Millisecond)
		return
	case o.Shut && !t.again:
		t.shut = true
		return
	case o.More, t.again:
		r.makeReady(o.Queue, t)
	default:
		delete(r.queues, o.Queue)
	}
	if o.Left == 0 {
		t.wait = 0
	}
}

// Due makes those ready whose back-off is over, and returns when the next one's is; 0: none backs off. One that is over much
// later than it lasts began by a clock that was set back since.
func (r *Ring) Due(now store.Millis) (next store.Millis) {
	for q, t := range r.queues {
		switch {
		case t.until == 0:
		case t.until <= now, t.until > now.Add(walkAgain+time.Second):
			r.makeReady(q, t)
		case next == 0 || t.until < next:
			next = t.until
		}
	}
	return next
}

// Waits reports whether some queue waits for its gate.
func (r *Ring) Waits() bool {
	for _, t := range r.queues {
		if t.shut {
			return true
		}
	}
	return false
}

// Idle reports whether no turn is in flight.
func (r *Ring) Idle() bool { return r.busy == 0 }

// Has reports whether some queue has something, or may have.
func (r *Ring) Has() bool { return len(r.queues) > 0 }

// Knows reports whether a queue has something, or may have.
func (r *Ring) Knows(q store.Queue) bool { return r.queues[q] != nil }

// Reset forgets all queues, and returns them: they are another owner's. Turns that are in flight are nobody's.
func (r *Ring) Reset() (all []store.Queue) {
	for q := range r.queues {
		all = append(all, q)
	}
	*r = *NewRing()
	return all
}
