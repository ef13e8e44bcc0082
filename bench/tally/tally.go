// Package tally counts what became of the tasks of a measurement.
package tally

import (
	"math/bits"
	"time"
)

// Tally is the short form of a ledger (package ledger), for measurements: tasks are numbers from 0 to
// n-1, and only counts are kept. It is not safe for concurrent use.
//
// Violations are a task lost (acknowledged, never delivered), early (started
// before its due time) or duplicate (delivered again with an attempt that is
// not higher than one before). A repeat, which is a delivery with a higher
// attempt, is legal: that is what at least once means.
type Tally struct {
	acknowledged bitset
	delivered    bitset
	attempts     []uint16 // the highest seen
	early        int
	duplicate    int
	repeat       int
}

// Counts are the deliveries that were not what was promised, or at least not the
// first.
type Counts struct {
	Early     int // started before due
	Duplicate int // again, with no higher attempt
	Repeat    int // again, with a higher attempt: legal
}

// New returns the tally of a run of n tasks.
func New(n int) *Tally {
	return &Tally{newBitset(n), newBitset(n), make([]uint16, n), 0, 0, 0}
}

// Acknowledge notes that the enqueue of task i was answered OK.
func (t *Tally) Acknowledge(i int) { t.acknowledged.set(i) }

// Deliver notes that a handler started on task i. A zero due time is one that
// was never asked for.
func (t *Tally) Deliver(i, attempt int, due, start time.Time) {
	if !due.IsZero() && start.Before(due) {
		t.early++
	}
	if t.delivered.has(i) {
		if attempt > int(t.attempts[i]) {
			t.repeat++
		} else {
			t.duplicate++
		}
	}
	t.delivered.set(i)
	t.attempts[i] = max(t.attempts[i], uint16(min(attempt, 1<<16-1)))
}

// Has reports whether task i was delivered.
func (t *Tally) Has(i int) bool { return t.delivered.has(i) }

// Delivered is a copy of the tasks that were delivered: bit i%64 of word i/64.
func (t *Tally) Delivered() []uint64 { return append([]uint64(nil), t.delivered...) }

// Counts returns what was counted so far.
func (t *Tally) Counts() Counts { return Counts{t.early, t.duplicate, t.repeat} }

// Lost is how many tasks were acknowledged and are not in delivered.
func (t *Tally) Lost(delivered []uint64) int {
	lost := 0
	for i, word := range t.acknowledged {
		var got uint64
		if i < len(delivered) {
			got = delivered[i]
		}
		lost += bits.OnesCount64(word &^ got)
	}
	return lost
}

// bitset is a set of small numbers.
type bitset []uint64

func newBitset(n int) bitset    { return make(bitset, (n+63)/64) }
func (b bitset) set(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bitset) has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }
