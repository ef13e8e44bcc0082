package shard

import (
	"math"
	"slices"
	"time"

	"github.com/ddq-io/ddq/actors/clock"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer"
)

// shardClock is the time of a shard, and its timers: due times and deadlines are on the
// clock of the store's machine that has the shard.
type shardClock struct {
	primary *clock.Clock // that machine's
	node    *clock.Clock // that the wheel goes by
	timers  *timer.Wheel // of the node
	queues  []shardQueue // those that are open
	ahead   int64        // ms that primary is ahead of node, as the queues go by
	jumps   int          // of primary that were seen
	rereads int          // still to come because of them
}

// now is the time of the shard's primary.
func (c *shardClock) now() store.Millis { return c.primary.Millis() }

// shiftSlack is how late, in ms, slots may be before the queues are shifted: that arms
// every slot anew.
const shiftSlack = 2

// openQueue returns a queue of moments of the shard's clock.
func (c *shardClock) openQueue(notify func(ms int64)) *timer.Queue {
	q := c.timers.NewQueue(notify)
	q.Shift(c.ahead)
	c.queues = append(c.queues, shardQueue{Queue: q})
	return q
}

// shardQueue is a queue that tells of its moments so many ms before they come.
type shardQueue struct {
	*timer.Queue
	lead int64
}

// lead has a queue tell of its moments so long before they come.
func (c *shardClock) lead(q *timer.Queue, by store.Millis) {
	for i := range c.queues {
		if open := &c.queues[i]; open.Queue == q {
			open.lead = int64(by)
			q.Shift(c.ahead + open.lead)
		}
	}
}

func (c *shardClock) closeQueue(q *timer.Queue) {
	q.Close()
	c.queues = slices.DeleteFunc(c.queues, func(open shardQueue) bool { return open.Queue == q })
}

// follow shifts the queues once the clock of the shard's primary has moved against the
// wheel's.
func (c *shardClock) follow() {
	if ahead := c.aheadOfWheel(); ahead < c.ahead || ahead > c.ahead+shiftSlack {
		c.shift(ahead)
	}
}

// tooEarly reports whether a slot fired before its time, and has that not happen again.
func (c *shardClock) tooEarly(ms int64) bool {
	if c.now() >= store.Millis(ms) {
		return false
	}
	c.shift(c.aheadOfWheel())
	return true
}

func (c *shardClock) shift(ahead int64) {
	c.ahead = ahead
	for _, q := range c.queues {
		q.Shift(ahead + q.lead)
	}
}

// aheadOfWheel is how far the shard's clock is ahead of the wheel's, in ms rounded down.
func (c *shardClock) aheadOfWheel() int64 {
	if c.primary == c.node {
		return 0
	}
	own, _ := c.primary.Bounds()
	wheel, _ := c.node.Bounds()
	return int64(math.Floor(float64(own-wheel) / float64(time.Millisecond)))
}

// byPrimary is a moment of the node's clock, which rates and caps go by, on the clock of the
// shard's primary: the earliest that it can be. 0 is no moment, and stays so. It may be called off
// the actor.
func (c *shardClock) byPrimary(ms store.Millis) store.Millis {
	if c.primary == c.node || ms == 0 {
		return ms
	}
	own, _ := c.primary.Bounds()
	_, node := c.node.Bounds()
	return ms + store.Millis(math.Floor(float64(own-node)/float64(time.Millisecond)))
}

// sawJump reports whether the window is to be read anew because the shard's clock has
// jumped: at once, and once more with the next of the node's messages about jumps.
func (c *shardClock) sawJump() bool {
	c.follow()
	if jumps := c.primary.Jumped(); jumps != c.jumps {
		c.jumps, c.rereads = jumps, 2
	}
	if c.rereads == 0 {
		return false
	}
	c.rereads--
	return true
}
