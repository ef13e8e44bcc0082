package actors

import (
	"math"
	"sync"
	"time"

	"github.com/ddq-io/ddq/store"
)

const (
	// clockDrift is how fast two clocks are assumed to part, at most.
	clockDrift = 500e-6
	// clockJump is the step of the store's clock that is worth an alarm.
	clockJump = 500 * time.Millisecond
)

// clock follows the store's clock. Every reply bounds the offset between that
// clock and this process's monotonic one: the store read its clock after the
// call was sent and before the reply came. The tightest bounds win, and widen
// with age to allow for drift.
//
// It is safe for concurrent use.
type clock struct {
	base   time.Time // monotonic origin
	onJump func(by time.Duration)

	mu     sync.Mutex
	low    time.Duration // offset of the store's clock from monotonic time, at least
	high   time.Duration // and at most
	seen   time.Duration // monotonic time of the last observation
	anchor bool          // low and high are set
}

func newClock(onJump func(by time.Duration)) *clock {
	return &clock{base: time.Now(), onJump: onJump}
}

// observe takes in that the store's clock read now between sent and received.
func (c *clock) observe(sent, received, now time.Time) {
	storeNow := time.Duration(now.UnixNano())
	low, high := storeNow-received.Sub(c.base), storeNow-sent.Sub(c.base)
	if jumped := c.narrow(low, high, received.Sub(c.base)); jumped != 0 && c.onJump != nil {
		c.onJump(jumped)
	}
}

func (c *clock) narrow(low, high, at time.Duration) (jumped time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.anchor {
		c.low, c.high, c.seen, c.anchor = low, high, at, true
		return 0
	}
	before := c.low
	widen := time.Duration(float64(max(0, at-c.seen)) * clockDrift)
	c.low, c.high, c.seen = max(low, c.low-widen), min(high, c.high+widen), max(at, c.seen)
	if c.low <= c.high {
		return 0
	}
	// The bounds exclude each other: the store's clock was set.
	c.low, c.high = low, high
	if step := c.low - before; step.Abs() > clockJump {
		return step
	}
	return 0
}

// Now returns a moment that the store's clock has certainly reached, as far as
// its drift is bounded. It is the clock that tasks become ready on.
func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at(c.low)
}

// Latest returns a moment that the store's clock has not passed yet. A delay
// counted from it is never too short.
func (c *clock) Latest() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at(c.high)
}

func (c *clock) at(offset time.Duration) time.Time {
	if !c.anchor {
		return time.Now()
	}
	return time.Unix(0, int64(offset+time.Since(c.base)))
}

// millis is Now in whole milliseconds, rounded down.
func (c *clock) millis() store.Millis { return store.Millis(c.Now().UnixMilli()) }

// ceilMillis rounds t up to the millisecond.
func ceilMillis(t time.Time) store.Millis {
	return store.Millis(math.Ceil(float64(t.Nanosecond())/1e6)) + store.Millis(t.Unix()*1000)
}
