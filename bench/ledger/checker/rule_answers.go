package checker

import (
	"slices"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// answers holds deletes and edits to what was true when they were answered.
func answers(t *task) {
	stored, finisher := t.stored(), t.remover()
	for _, ops := range [][]*op{t.removals, t.edits, t.cancels, t.waits} {
		for _, o := range ops {
			switch {
			case o.result == ledger.Refused && o.answer.Reason == ledger.NoTask:
				if stored != nil && stored.result != ledger.Unknown && stored.to < o.Mono && (finisher == nil || finisher == o || finisher.Mono > o.to) {
					t.offend(verdict.Wrong, "%s said that there is no such task", o.Op)
				}
			case o.result == ledger.Refused && (o.answer.Reason == ledger.Running || o.answer.Reason == ledger.Finished):
				from := t.earliest
				if o.answer.Reason == ledger.Running {
					from -= heldAhead
				}
				if t.clock.Upper(heldSince(t.story), o.answer) < from {
					t.offend(verdict.Wrong, "%s said that it was delivered, before it was due", o.Op)
				}
			case o.did() && o.Op != ledger.Cancel && o.Op != ledger.Wait && o.Op != ledger.Drop:
				t.freeToChange(o)
			}
		}
	}
}

// freeToChange complains when a task was deleted or moved although it was gone, or a
// worker held it all the while.
func (t *task) freeToChange(o *op) {
	for _, before := range slices.Concat(t.removals, t.settles) {
		if before != o && before.Op != ledger.Extend && before.Op != ledger.Nack && before.Op != ledger.Release && before.did() && before.to < o.Mono {
			t.offend(verdict.Wrong, "%s was accepted after its %s", o.Op, before.Op)
			return
		}
	}
	for _, d := range t.deliveries {
		if !d.loose && d.Mono < o.Mono && !d.settledBefore(o.to) && t.until(d, o.Mono) > o.to {
			t.offend(verdict.Wrong, "%s was accepted while attempt %d was held", o.Op, d.Attempt)
			return
		}
	}
}
