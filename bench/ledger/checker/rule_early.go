package checker

import (
	"slices"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// early also holds the server to what it says itself: the due time in a delivery, and
// the delay of a nack.
func early(t *task) {
	for _, d := range t.deliveries {
		now := t.clock.Upper(heldSince(t.story), d.Event)
		if due := max(t.earliest, d.Due); now < due {
			t.offend(verdict.Early, "attempt %d at least %d ms before it was due", d.Attempt, due-now)
			return
		}
	}
	for _, o := range t.settles {
		if o.Op != ledger.Nack || !o.did() || o.DelayMS == 0 || o.settled == nil || t.movedAfter(o) {
			continue
		}
		for _, d := range t.deliveries {
			if d.ID != o.settled.ID { // another task of the same idempotency key
				continue
			}
			// Both ends are cut to milliseconds.
			if next := t.clock.After(o.Mono, (o.DelayMS-1)*millisecond); !d.loose && d.Attempt > o.settled.Attempt && d.Mono > o.Mono && d.Mono < next {
				t.offend(verdict.Early, "attempt %d came %d ms before the delay of the nack was over", d.Attempt, (next-d.Mono)/millisecond)
				return
			}
		}
	}
}

// movedAfter reports whether the task may have got another due time after a nack.
func (t *task) movedAfter(nack *op) bool {
	return slices.ContainsFunc(t.moves, func(m *op) bool { return m.may() && m.to > nack.Mono })
}
