package actors

import (
	"github.com/ddq-io/ddq/actors/dispatch"
	"github.com/ddq-io/ddq/store"
)

// holdOutcome, from a shard: what became of tasks that were assigned.
type holdOutcome struct {
	shard int
	dispatch.Outcome
}

func (m *holdOutcome) count(r *holdRequest, status store.Status, now store.Millis) {
	switch {
	case status == store.Late:
		m.Late++
	case status != store.OK, r.admission != nil && r.admission.Doomed: // a refund tells
	default:
		m.Held++
	}
	if r.admission != nil && r.admission.Since > 0 {
		m.Took = max(m.Took, now.Sub(r.admission.Since))
	}
}
