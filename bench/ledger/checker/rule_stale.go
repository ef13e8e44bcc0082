package checker

import (
	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// stale looks for settlements that were accepted after the hold was over: a later
// attempt had come, or the same hold was settled before.
func stale(t *task) {
	for _, o := range t.settles {
		if o.result != ledger.OK || o.settled == nil || o.settled.loose {
			continue
		}
		for _, d := range t.deliveries {
			if !d.loose && d.Attempt > o.settled.Attempt && d.Mono < o.Mono {
				t.offend(verdict.Stale, "%s of attempt %d was accepted after attempt %d had come", o.Op, o.settled.Attempt, d.Attempt)
				return
			}
		}
		for _, before := range o.settled.settles {
			if before.Op != ledger.Extend && before.did() && before.to < o.Mono {
				t.offend(verdict.Stale, "%s of attempt %d was accepted after its %s", o.Op, o.settled.Attempt, before.Op)
				return
			}
		}
	}
}

// refusals looks for settlements that were refused although the hold was alive.
func refusals(t *task) {
	for _, o := range t.settles {
		d := o.settled
		if o.result != ledger.Refused || d == nil || d.loose || o.answer.Reason != ledger.HoldLost && o.answer.Reason != ledger.NoTask {
			continue
		}
		if !t.endedBefore(d, o) && t.until(d, o.Mono) > o.to {
			t.offend(verdict.Wrong, "%s of attempt %d was refused while its hold was alive", o.Op, d.Attempt)
			return
		}
	}
}

// endedBefore reports whether anything else may have ended a hold before a settlement
// was answered.
func (t *task) endedBefore(d *delivery, o *op) bool {
	for _, other := range d.settles {
		if other != o && other.Op != ledger.Extend && other.may() && other.Mono < o.to {
			return true
		}
	}
	for _, other := range t.removals {
		if other.may() && other.Mono < o.to {
			return true
		}
	}
	for _, later := range t.deliveries {
		if later.Attempt > d.Attempt && later.Mono < o.to {
			return true // a violation of its own
		}
	}
	return false
}
