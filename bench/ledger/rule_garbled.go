package ledger

import "slices"

func garbled(t *task) {
	sums := map[string]bool{}
	for _, o := range slices.Concat(t.enqueues, t.edits) {
		sums[o.Sum] = true
	}
	for _, d := range t.deliveries {
		if !sums[d.Sum] {
			t.offend(Garbled, "attempt %d has another payload", d.Attempt)
			return
		}
	}
}
