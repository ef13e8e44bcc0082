package checker

import (
	"slices"

	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// garbled is not asked of a run that may have been made anew, perhaps after an edit.
func garbled(t *task) {
	if t.made() && t.loose() {
		return
	}
	sums := map[string]bool{}
	for _, o := range slices.Concat(t.enqueues, t.edits) {
		sums[o.Sum] = true
	}
	for _, d := range t.deliveries {
		if !sums[d.Sum] {
			t.offend(verdict.Garbled, "attempt %d has another payload", d.Attempt)
			return
		}
	}
}
