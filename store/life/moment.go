package life

import (
	"time"

	"github.com/ddq-io/ddq/store"
)

// Moment is the present of one call, by the store's clock.
type Moment struct{ At time.Time }

// Millis is the moment rounded down: a task is due once it has reached its due time.
func (m Moment) Millis() store.Millis { return store.Millis(m.At.UnixMilli()) }

// In returns the moment d from now, rounded up so that nothing is early. What is to be
// now is not rounded, so that it is due at once.
func (m Moment) In(d time.Duration) store.Millis {
	if d <= 0 {
		return m.Millis()
	}
	at := m.At.Add(d)
	ms := store.Millis(at.UnixMilli())
	if at.After(ms.Time()) {
		ms++
	}
	return ms
}

// From is the moment at which a hold begins: now, or when the task is due if it is held
// ahead of that.
func (m Moment) From(due store.Millis) Moment {
	if due > m.Millis() {
		return Moment{due.Time()}
	}
	return m
}

// Again is when a task is due again after a delay: not before it was due when it was held.
func (m Moment) Again(delay time.Duration, due store.Millis) store.Millis {
	return max(m.In(delay), due)
}

// Deadline is when a hold that begins now ends: after the task's own visibility timeout,
// or else the one asked for, and not after until, unless that is 0.
func (m Moment) Deadline(own, asked time.Duration, until store.Millis) store.Millis {
	if own > 0 {
		asked = own
	}
	deadline := m.In(asked)
	if until != 0 {
		deadline = min(deadline, until)
	}
	return deadline
}
