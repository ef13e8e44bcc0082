package checker

import (
	"slices"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// chosen: a due time that the server may choose is within the bounds, and stays as it
// was answered first.
func chosen(t *task) {
	first := int64(0)
	for _, o := range t.enqueues {
		if o.Latest == 0 || !o.did() {
			continue
		}
		if o.answer.Result == ledger.Already && t.mayHaveMoved(o.to) {
			continue // the answer has the due time that the task has now
		}
		due := o.answer.Due
		if due < o.Due || due > o.Latest {
			t.offend(verdict.Wrong, "due %d ms after the earliest time, of %d", due-o.Due, o.Latest-o.Due)
			return
		}
		if first != 0 && due != first && len(t.moves) == 0 {
			t.offend(verdict.Wrong, "the enqueue was answered with two due times")
			return
		}
		first = due
	}
}

// mayHaveMoved reports whether the task may have had another due time by a moment, from an
// edit or from an attempt.
func (s *story) mayHaveMoved(moment int64) bool {
	return slices.ContainsFunc(s.moves, func(o *op) bool { return o.may() && o.Mono < moment }) ||
		slices.ContainsFunc(s.deliveries, func(d *delivery) bool { return d.Mono < moment })
}
