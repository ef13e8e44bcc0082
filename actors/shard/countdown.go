package shard

import (
	"sync/atomic"
)

// Countdown calls done when all of n parts are finished.
type Countdown struct {
	left atomic.Int32
	done func()
}

// NewCountdown returns a countdown of n parts; done is called by whoever finishes the last.
func NewCountdown(n int, done func()) *Countdown {
	c := &Countdown{done: done}
	c.left.Store(int32(n))
	return c
}

// Finish counts k parts out.
func (c *Countdown) Finish(k int) {
	if c.left.Add(-int32(k)) == 0 {
		c.done()
	}
}
