package checker

import (
	"slices"

	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// served looks whether a task that nothing but ddq made wait was delivered while a fault lasted that is to hold nobody up.
func served(t *task) {
	due, known := t.latestDue()
	if policy := t.policy(); !known || policy != nil && policy.Special() {
		return
	}
	_, ready := t.clock.Bounds(due)
	for _, f := range t.faults {
		until := max(ready, f.From, t.stored().to) + t.stuckAfter*millisecond
		r := t.remover()
		if !slices.Contains(t.serving, f.Name) || until > min(f.To, t.to) || r != nil && r.Mono < until {
			continue
		}
		if len(t.deliveries) == 0 || t.deliveries[0].Mono > until {
			t.offend(verdict.Stuck, "due and not delivered for %d ms of %s", t.stuckAfter, f.Name)
		}
	}
}
