package store

import (
	"cmp"
	"strings"
)

// Traits are what the order of deliveries depends on besides due times. A task
// without any has none (nil). What one points to is never changed.
type Traits struct {
	Priority       int // 0, the lowest, to MaxPriority
	FairnessWeight int // how many tasks of the fairness key make a turn, to MaxWeight; 0 means 1

	// Keys of at most MaxKey bytes; empty: none.
	FairnessKey    string // tasks of one key take turns with those of others
	RateKey        string // tasks of one key share a rate
	ConcurrencyKey string // tasks of one key share a cap
	OrderingKey    string // tasks of one key are held one at a time, in order of their due times
}

// MaxWeight is the most that a fairness key weighs.
const MaxWeight = 1000

// MaxPriority is the highest priority.
const MaxPriority = 9

// MaxKey is the most bytes of a key.
const MaxKey = 128

// Lane is where a pending task stands in line: among those of its priority and
// fairness key. The zero Lane is that of tasks with neither.
type Lane struct {
	Priority int
	Key      string // fairness key
}

// Compare orders lanes by priority, the highest first, then by key.
func (l Lane) Compare(m Lane) int {
	return cmp.Or(cmp.Compare(m.Priority, l.Priority), strings.Compare(l.Key, m.Key))
}

// Lane returns the lane of a task with these traits; none are fine.
func (t *Traits) Lane() Lane {
	if t == nil {
		return Lane{}
	}
	return Lane{t.Priority, t.FairnessKey}
}

// LaneHead is a lane with pending tasks.
type LaneHead struct {
	Lane
	Due Millis // of the first of them
}
