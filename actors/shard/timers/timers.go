package timers

import (
	"math"
	"slices"
	"time"

	"github.com/ddq-io/ddq/actors/clock"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer"
)

// Timers is the time of a shard, and its timers: due times and deadlines are on the
// clock of the store's machine that has the shard.
type Timers struct {
	primary *clock.Clock // that machine's
	node    *clock.Clock // that the wheel goes by
	wheel   *timer.Wheel // of the node
	queues  []shardQueue // those that are open
	ahead   int64        // ms that primary is ahead of node, as the queues go by
	jumps   int          // of primary that were seen
	rereads int          // still to come because of them
}

// New returns the timers of a shard whose primary has a clock, on the wheel of a node.
func New(primary, node *clock.Clock, wheel *timer.Wheel) Timers {
	return Timers{primary: primary, node: node, wheel: wheel, jumps: primary.Jumped()}
}

// Now is the time of the shard's primary.
func (t *Timers) Now() store.Millis { return t.primary.Millis() }

// Bound is a moment that the clock of the shard's primary has not passed.
func (t *Timers) Bound() store.Millis { return clock.CeilMillis(t.primary.Latest()) }

// Age is how long ago the clock of the shard's primary was heard of last.
func (t *Timers) Age() time.Duration { return t.primary.Age() }

// shiftSlack is how late, in ms, slots may be before the queues are shifted: that arms
// every slot anew.
const shiftSlack = 2

// OpenQueue returns a queue of moments of the shard's clock.
func (t *Timers) OpenQueue(notify func(ms int64)) *timer.Queue {
	q := t.wheel.NewQueue(notify)
	q.Shift(t.ahead)
	t.queues = append(t.queues, shardQueue{Queue: q})
	return q
}

// shardQueue is a queue that tells of its moments so many ms before they come.
type shardQueue struct {
	*timer.Queue
	lead int64
}

// SetLead has a queue tell of its moments so long before they come.
func (t *Timers) SetLead(q *timer.Queue, by store.Millis) {
	for i := range t.queues {
		if open := &t.queues[i]; open.Queue == q {
			open.lead = int64(by)
			q.Shift(t.ahead + open.lead)
		}
	}
}

// CloseQueue ends a queue.
func (t *Timers) CloseQueue(q *timer.Queue) {
	q.Close()
	t.queues = slices.DeleteFunc(t.queues, func(open shardQueue) bool { return open.Queue == q })
}

// Follow shifts the queues once the clock of the shard's primary has moved against the
// wheel's.
func (t *Timers) Follow() {
	if ahead := t.aheadOfWheel(); ahead < t.ahead || ahead > t.ahead+shiftSlack {
		t.shift(ahead)
	}
}

// TooEarly reports whether a slot fired before its time, and has that not happen again.
func (t *Timers) TooEarly(ms int64) bool {
	if t.Now() >= store.Millis(ms) {
		return false
	}
	t.shift(t.aheadOfWheel())
	return true
}

func (t *Timers) shift(ahead int64) {
	t.ahead = ahead
	for _, q := range t.queues {
		q.Shift(ahead + q.lead)
	}
}

// aheadOfWheel is how far the shard's clock is ahead of the wheel's, in ms rounded down.
func (t *Timers) aheadOfWheel() int64 {
	if t.primary == t.node {
		return 0
	}
	own, _ := t.primary.Bounds()
	wheel, _ := t.node.Bounds()
	return int64(math.Floor(float64(own-wheel) / float64(time.Millisecond)))
}

// ByPrimary is a moment of the node's clock, which rates and caps go by, on the clock of the
// shard's primary: the earliest that it can be. 0 is no moment, and stays so. It may be called off
// the actor.
func (t *Timers) ByPrimary(ms store.Millis) store.Millis {
	if t.primary == t.node || ms == 0 {
		return ms
	}
	own, _ := t.primary.Bounds()
	_, node := t.node.Bounds()
	return ms + store.Millis(math.Floor(float64(own-node)/float64(time.Millisecond)))
}

// SawJump reports whether the window is to be read anew because the shard's clock has
// jumped: at once, and once more with the next of the node's messages about jumps.
func (t *Timers) SawJump() bool {
	t.Follow()
	if jumps := t.primary.Jumped(); jumps != t.jumps {
		t.jumps, t.rereads = jumps, 2
	}
	if t.rereads == 0 {
		return false
	}
	t.rereads--
	return true
}
