package clock

import (
	"math"
	"sync"
	"time"

	"github.com/ddq-io/ddq/store"
)

const (
	// clockDrift is how fast two clocks are assumed to part, at most.
	clockDrift = 500e-6
	// ClockJump is the step of the store's clock that is worth an alarm.
	ClockJump = 500 * time.Millisecond
)

// Clock follows a clock of the store. Every reply bounds the offset between that
// clock and this process's monotonic one: the store read its clock after the
// call was sent and before the reply came. The tightest bounds win, and widen
// with age to allow for drift.
//
// A store on several machines has several clocks, one for each.
//
// It is safe for concurrent use.
type Clock struct {
	base   time.Time // monotonic origin
	first  *Clock    // asked until something was observed; nil: the machine's clock
	onJump func(by time.Duration)

	mu     sync.Mutex
	low    time.Duration // offset of the store's clock from monotonic time, at least
	high   time.Duration // and at most
	seen   time.Duration // monotonic time of the last observation
	anchor bool          // low and high are set
	jumps  int           // steps beyond ClockJump
}

// New returns a clock of which nothing was observed yet: it is the machine's. onJump, if
// any, is told of steps beyond ClockJump, on the goroutine that observed them.
func New(onJump func(by time.Duration)) *Clock {
	return &Clock{base: time.Now(), onJump: onJump}
}

// Other returns a clock of another machine of the store. It says what c says until
// something of that machine was observed.
func (c *Clock) Other() *Clock {
	return &Clock{base: c.base, first: c, onJump: c.onJump}
}

// Observe records that the store's clock read now between sent and received.
func (c *Clock) Observe(sent, received, now time.Time) {
	storeNow := time.Duration(now.UnixNano())
	low, high := storeNow-received.Sub(c.base), storeNow-sent.Sub(c.base)
	if jumped := c.narrow(low, high, received.Sub(c.base)); jumped != 0 && c.onJump != nil {
		c.onJump(jumped)
	}
}

func (c *Clock) narrow(low, high, at time.Duration) (jumped time.Duration) {
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
	if step := c.low - before; step.Abs() > ClockJump {
		c.jumps++
		return step
	}
	return 0
}

// Now returns a moment that the store's clock has certainly reached, as far as
// its drift is bounded. It is the clock that tasks become ready on.
func (c *Clock) Now() time.Time {
	low, _ := c.Bounds()
	return c.at(low)
}

// Latest returns a moment that the store's clock has not passed yet. A delay
// counted from it is never too short.
func (c *Clock) Latest() time.Time {
	_, high := c.Bounds()
	return c.at(high)
}

// Bounds are the least and the greatest offset from monotonic time.
func (c *Clock) Bounds() (low, high time.Duration) {
	c.mu.Lock()
	low, high, anchor := c.low, c.high, c.anchor
	c.mu.Unlock()
	switch {
	case anchor:
		return low, high
	case c.first != nil:
		return c.first.Bounds()
	}
	off := time.Duration(time.Now().UnixNano()) - time.Since(c.base)
	return off, off
}

// Age is how long ago the clock was heard of last, which is for ever where it never was.
func (c *Clock) Age() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.anchor {
		return math.MaxInt64
	}
	return time.Since(c.base) - c.seen
}

// Known reports whether the offset from monotonic time is known as exactly as that.
func (c *Clock) Known(within time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	widen := time.Duration(float64(time.Since(c.base)-c.seen) * clockDrift)
	return c.anchor && c.high-c.low+2*widen <= within
}

func (c *Clock) at(offset time.Duration) time.Time {
	return time.Unix(0, int64(offset+time.Since(c.base)))
}

// Jumped returns how often the clock was seen to jump.
func (c *Clock) Jumped() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.jumps
}

// Millis is Now in whole milliseconds, rounded down.
func (c *Clock) Millis() store.Millis { return store.Millis(c.Now().UnixMilli()) }

// CeilMillis rounds t up to the millisecond.
func CeilMillis(t time.Time) store.Millis {
	return store.Millis(math.Ceil(float64(t.Nanosecond())/1e6)) + store.Millis(t.Unix()*1000)
}

// ShiftBase makes the process's clock another one by so much, as far as this clock knows
// it. It is called before the first answer of the store.
func (c *Clock) ShiftBase(by time.Duration) { c.base = c.base.Add(by) }
