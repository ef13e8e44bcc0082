// Package clock bounds what the clock of a store said, by what clients read of it.
package clock

import (
	"cmp"
	"math"
	"slices"

	"github.com/ddq-io/ddq/bench/ledger"
)

// Clock knows what a store's clock said, in bounds. Where it was read during the run,
// the readings count; without any, the store is taken to be on this machine, and its
// clock to be the time of day. The zero value has seen nothing.
type Clock struct {
	readings []reading
	ahead    int64 // the most that it ever was ahead of the monotonic clock, in ns
	least    int64 // the least
}

// reading bounds how far the store's clock was ahead of the monotonic one at mono.
type reading struct {
	mono      int64
	low, high int64 // ns
}

const (
	millisecond = 1_000_000
	minute      = 60_000 * millisecond
)

// See takes what an event tells of the clocks.
func (c *Clock) See(e *ledger.Event) {
	if e.Kind != ledger.Clock {
		if c.ahead == 0 || e.Wall-e.Mono > c.ahead {
			c.ahead = e.Wall - e.Mono
		}
		if c.least == 0 || e.Wall-e.Mono < c.least {
			c.least = e.Wall - e.Mono
		}
		return
	}
	now := e.StoreNow * millisecond // cut to the millisecond, so up to one more
	c.readings = append(c.readings, reading{e.Mono, now - e.Mono, now + millisecond - (e.Mono - e.Took)})
}

// Ready is called once everything was seen.
func (c *Clock) Ready() {
	if len(c.readings) == 0 {
		return
	}
	slices.SortFunc(c.readings, func(a, b reading) int { return cmp.Compare(a.mono, b.mono) })
	c.ahead, c.least = math.MinInt64, math.MaxInt64
	for _, r := range c.readings {
		c.ahead, c.least = max(c.ahead, r.high), min(c.least, r.low)
	}
}

// around are the readings before and after a moment; the clock may have been set at
// any time between the two.
func (c *Clock) around(mono int64) []reading {
	i, _ := slices.BinarySearchFunc(c.readings, mono, func(r reading, mono int64) int { return cmp.Compare(r.mono, mono) })
	return c.readings[max(0, i-1):min(len(c.readings), i+1)]
}

// Upper is the latest that the store's clock can have said between since and e, in ms:
// what e tells of was done by the store at some time before. The clock may have been
// set back meanwhile.
func (c *Clock) Upper(since int64, e *ledger.Event) int64 {
	if len(c.readings) == 0 {
		return e.Wall / millisecond
	}
	first, _ := slices.BinarySearchFunc(c.readings, since, func(r reading, mono int64) int { return cmp.Compare(r.mono, mono) })
	first = max(0, first-1)
	latest := int64(math.MinInt64)
	for i, r := range c.readings[first:] {
		if i > 0 && r.mono >= e.Mono {
			break
		}
		until, ahead := e.Mono, r.high
		if next := first + i + 1; next < len(c.readings) {
			until, ahead = min(until, c.readings[next].mono), max(ahead, c.readings[next].high)
		}
		latest = max(latest, until+ahead)
	}
	return latest / millisecond
}

// After is the earliest moment at which the store's clock can have counted d ns from
// mono on: it may have been set meanwhile.
func (c *Clock) After(mono, d int64) int64 {
	near := c.around(mono)
	if len(near) == 0 {
		return mono + d
	}
	behind := near[0].low
	for _, r := range near {
		behind = min(behind, r.low)
	}
	return mono + behind + d - c.ahead
}

// Late is by how much e came after a due time in ms, in ns: what the reading next
// before it makes of it.
func (c *Clock) Late(e *ledger.Event, due int64) int64 {
	near := c.around(e.Mono)
	if len(near) == 0 {
		return e.Wall - due*millisecond
	}
	return e.Mono + (near[0].low+near[0].high)/2 - due*millisecond
}

// Reached is the earliest moment, on the monotonic clock, at which the store's clock
// can have said ms.
func (c *Clock) Reached(ms int64) int64 { return ms*millisecond - c.ahead }

// Within reports whether the store's clock may have said ms between two moments.
func (c *Clock) Within(ms, from, to int64) bool {
	earliest, latest := c.Bounds(ms)
	return earliest <= to && latest >= from
}

// Bounds are the moments between which the store's clock said ms: the earliest and the
// latest that can be.
func (c *Clock) Bounds(ms int64) (from, to int64) {
	return c.Reached(ms), (ms+1)*millisecond - c.least
}

// WasSet reports whether the store's clock was set during the run.
func (c *Clock) WasSet() bool { return c.ahead-c.least > minute }
