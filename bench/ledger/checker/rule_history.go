package checker

import (
	"slices"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// historyCap is how many attempts a store keeps.
const historyCap = 20

// history: where attempts are kept, every one that a worker had is written down as it ended, and
// none that ended in another way. Of a run that was made anew only the last task's are.
func history(t *task) {
	f := t.found
	if topic := t.policy(); f == nil || topic == nil || topic.KeepMS == 0 || len(f.History) >= historyCap {
		return
	}
	anew := t.made() && t.loose()
	for _, d := range t.deliveries {
		if !anew && !d.loose && !t.written(d) {
			return
		}
	}
	for i := range f.History {
		if a := &f.History[i]; t.undone(a.Started) || !t.happened(a) {
			return
		}
	}
}

// written reports whether a delivery, and what was accepted of its settlements, is in the history.
func (t *task) written(d *delivery) bool {
	var own []*ledger.Attempt
	for i := range t.found.History {
		if a := &t.found.History[i]; a.Number == d.Attempt && a.Worker == d.Client {
			own = append(own, a)
		}
	}
	if !slices.ContainsFunc(own, func(a *ledger.Attempt) bool { return a.Started <= t.clock.Upper(heldSince(t.story), d.Event) }) {
		t.offend(verdict.Wrong, "attempt %d of %s is not in the history", d.Attempt, d.Client)
		return false
	}
	for _, o := range d.settles {
		if o.Op == ledger.Extend || o.result != ledger.OK {
			continue
		}
		if !slices.ContainsFunc(own, func(a *ledger.Attempt) bool { return endedBy(a, o.Op) }) {
			t.offend(verdict.Wrong, "the %s of attempt %d is not in the history", o.Op, d.Attempt)
			return false
		}
	}
	return true
}

// happened reports whether an attempt of the history may have ended as it says.
func (t *task) happened(a *ledger.Attempt) bool {
	if a.Started != 0 && a.Started < t.earliest {
		t.offend(verdict.Early, "attempt %d began %d ms before it was due, by the store's books", a.Number, t.earliest-a.Started)
		return false
	}
	kinds := map[string]ledger.Op{"acked": ledger.Ack, "failed": ledger.Nack, "released": ledger.Release}
	if kind := kinds[a.Outcome]; kind != "" {
		if !slices.ContainsFunc(t.settles, func(o *op) bool {
			return o.Op == kind && o.may() && o.settled != nil && o.settled.Attempt == a.Number
		}) {
			t.offend(verdict.Wrong, "the history has attempt %d as %s, and no worker said so", a.Number, a.Outcome)
			return false
		}
	}
	if a.Outcome == "cancelled" && !slices.ContainsFunc(t.cancels, (*op).may) {
		t.offend(verdict.Wrong, "the history has attempt %d as cancelled, and nobody asked for it", a.Number)
		return false
	}
	return true
}
