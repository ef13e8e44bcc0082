package checker

import "github.com/ddq-io/ddq/bench/ledger/verdict"

// served looks whether a task that nothing but ddq made wait was delivered while a fault lasted that is to hold nobody up.
func served(t *task) {
	due, known := t.latestDue()
	if policy := t.policy(); !known || policy != nil && policy.Special() {
		return
	}
	_, ready := t.clock.Bounds(due)
	ready = max(ready, t.stored().to)
	for _, f := range t.serving {
		since := max(ready, f.From)
		until := since + t.stuckAfter*millisecond
		if until > f.To || until > t.to {
			continue
		}
		if r := t.remover(); r != nil && r.Mono < until {
			continue
		}
		if len(t.deliveries) == 0 || t.deliveries[0].Mono > until {
			t.offend(verdict.Stuck, "due and not delivered for %d ms of %s", t.stuckAfter, f.Name)
		}
	}
}
