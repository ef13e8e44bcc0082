package ledger

import "slices"

// answers holds deletes and edits to what was true when they were answered.
func answers(t *task) {
	stored, finisher := t.stored(), t.remover()
	for _, ops := range [][]*op{t.removals, t.edits, t.cancels, t.waits} {
		for _, o := range ops {
			switch {
			case o.result == Refused && o.answer.Reason == NoTask:
				if stored != nil && stored.result != Unknown && stored.to < o.Mono && (finisher == nil || finisher == o || finisher.Mono > o.to) {
					t.offend(Wrong, "%s said that there is no such task", o.Op)
				}
			case o.result == Refused && (o.answer.Reason == Running || o.answer.Reason == Finished):
				from := t.earliest
				if o.answer.Reason == Running {
					from -= heldAhead
				}
				if t.clock.upper(t.begin(), o.answer) < from {
					t.offend(Wrong, "%s said that it was delivered, before it was due", o.Op)
				}
			case o.did() && o.Op != Cancel && o.Op != Wait && o.Op != Drop:
				t.freeToChange(o)
			}
		}
	}
}

// freeToChange complains when a task was deleted or moved although it was gone, or a
// worker held it all the while.
func (t *task) freeToChange(o *op) {
	for _, before := range slices.Concat(t.removals, t.settles) {
		if before != o && before.Op != Extend && before.Op != Nack && before.Op != Release && before.did() && before.to < o.Mono {
			t.offend(Wrong, "%s was accepted after its %s", o.Op, before.Op)
			return
		}
	}
	for _, d := range t.deliveries {
		if !d.loose && d.Mono < o.Mono && !d.settledBefore(o.to) && t.until(d, o.Mono) > o.to {
			t.offend(Wrong, "%s was accepted while attempt %d was held", o.Op, d.Attempt)
			return
		}
	}
}
