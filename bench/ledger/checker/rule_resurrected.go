package checker

import (
	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// resurrected looks for life after the end.
func resurrected(t *task) {
	acked := t.acked()
	if acked != nil {
		for _, d := range t.deliveries {
			if !d.loose && d.Attempt > acked.settled.Attempt {
				t.offend(verdict.Resurrected, "attempt %d, though attempt %d was acked", d.Attempt, acked.settled.Attempt)
				return
			}
		}
		if f := t.found; f != nil && f.State != "done" {
			t.offend(verdict.Resurrected, "%s in the store at the end, though it was acked", f.State)
			return
		}
	}
	for _, o := range t.removals {
		if o.did() && t.livesAfter(o) {
			return
		}
	}
}

// acked is the ack that was accepted; two of different holds are a violation already.
func (t *task) acked() (first *op) {
	for _, o := range t.settles {
		if o.Op != ledger.Ack || !o.did() || o.settled == nil || o.settled.loose {
			continue
		}
		if first != nil && first.Token != o.Token {
			t.offend(verdict.Stale, "acks of attempts %d and %d were both accepted", first.settled.Attempt, o.settled.Attempt)
		}
		if first == nil || o.settled.Attempt < first.settled.Attempt {
			first = o
		}
	}
	return first
}

// livesAfter reports whether a task lived on after it was deleted.
func (t *task) livesAfter(gone *op) bool {
	ahead := int64(0)
	if gone.Op == ledger.Drop { // takes tasks that are held, too; a delete is told of these
		ahead = heldAhead
	}
	for _, d := range t.deliveries {
		if !d.loose && t.grantedAhead(d, ahead) > gone.to {
			t.offend(verdict.Resurrected, "attempt %d came after it was deleted", d.Attempt)
			return true
		}
		for _, o := range d.settles {
			if o.result == ledger.OK && o.Mono > gone.to {
				t.offend(verdict.Resurrected, "%s of attempt %d was accepted after it was deleted", o.Op, d.Attempt)
				return true
			}
		}
	}
	if f := t.found; f != nil {
		t.offend(verdict.Resurrected, "%s in the store at the end, though it was deleted", f.State)
		return true
	}
	return false
}
