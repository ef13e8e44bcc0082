package bench

import (
	"math/bits"
	"time"
)

// Ledger holds what a run was promised against what it got. Tasks are numbers
// from 0 to n-1. It is not safe for concurrent use.
//
// Violations are a task lost (acknowledged, never delivered), early (started
// before its due time) or duplicate (delivered again with an attempt that is
// not higher than one before). A repeat, which is a delivery with a higher
// attempt, is legal: that is what at least once means.
type Ledger struct {
	acknowledged bitset
	delivered    bitset
	attempts     []uint16 // the highest seen
	early        int
	duplicate    int
	repeat       int
}

// NewLedger returns the ledger of a run of n tasks.
func NewLedger(n int) *Ledger {
	return &Ledger{newBitset(n), newBitset(n), make([]uint16, n), 0, 0, 0}
}

// Acknowledge notes that the enqueue of task i was answered OK.
func (l *Ledger) Acknowledge(i int) { l.acknowledged.set(i) }

// Deliver notes that a handler started on task i. A zero due time is one that
// was never asked for.
func (l *Ledger) Deliver(i, attempt int, due, start time.Time) {
	if !due.IsZero() && start.Before(due) {
		l.early++
	}
	if l.delivered.has(i) {
		if attempt > int(l.attempts[i]) {
			l.repeat++
		} else {
			l.duplicate++
		}
	}
	l.delivered.set(i)
	l.attempts[i] = max(l.attempts[i], uint16(min(attempt, 1<<16-1)))
}

// Delivered is how many tasks were delivered at least once.
func (l *Ledger) Delivered() int { return l.delivered.count() }

// Lost is how many tasks were acknowledged and are not in delivered.
func (l *Ledger) Lost(delivered []uint64) int {
	lost := 0
	for i, word := range l.acknowledged {
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
func (b bitset) count() (n int) {
	for _, word := range b {
		n += bits.OnesCount64(word)
	}
	return n
}
