package actors

import (
	"github.com/ddq-io/ddq/actors/dispatch"
	"github.com/ddq-io/ddq/store"
)

// cameThrough, from a shard: what became of tasks that were assigned.
type cameThrough struct {
	shard int
	dispatch.Outcome
}

func (m *cameThrough) count(r *holdRequest, status store.Status, now store.Millis) {
	switch {
	case status == store.Late:
		m.Late++
	case status != store.OK, r.leave != nil && r.leave.Doomed: // a refund tells
	default:
		m.Held++
	}
	if r.leave != nil && r.leave.Since > 0 {
		m.Took = max(m.Took, now.Sub(r.leave.Since))
	}
}
