package checker

import (
	"slices"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// cancels: a task whose cancellation was asked for, or that was over by then, is not
// delivered again; one that is cancelled did not succeed, and one that was held could be
// asked.
func cancels(t *task) {
	for _, o := range t.cancels {
		switch {
		case o.result == ledger.Refused && o.answer.Reason == notRunning:
			t.heldAllTheWhile(o)
		case o.did() && o.answer.Outcome != dropped:
			t.overAfter(o)
		}
		if !o.did() || o.answer.Outcome != confirmed {
			continue
		}
		if ack := t.accepted(ledger.Ack); ack != nil {
			t.offend(verdict.Wrong, "cancel was confirmed, and attempt %d was acked", ack.settled.Attempt)
		}
		if f := t.found; f != nil && (f.State != "dead" || f.Reason != "cancelled") {
			t.offend(verdict.Wrong, "cancel was confirmed, and the task is %s (%s)", f.State, f.Reason)
		}
	}
}

// overAfter complains of an attempt that began after a cancel was answered. One that was asked
// to stop, and was with no worker, was held ahead of its due time: its node may not have heard.
func (t *task) overAfter(o *op) {
	ahead := int64(0)
	if o.answer.Outcome == requested && !slices.ContainsFunc(t.deliveries, func(d *delivery) bool {
		return d.Mono < o.to && !d.settledBefore(o.Mono) && t.until(d, o.Mono) > o.Mono
	}) {
		ahead = heldAhead * millisecond
	}
	for _, d := range t.deliveries {
		if !d.loose && t.granted(d) > o.to+ahead {
			t.offend(verdict.Resurrected, "attempt %d came after a cancel was answered with %s", d.Attempt, o.answer.Outcome)
			return
		}
	}
}

// heldAllTheWhile complains of a refusal because the task does not run, though it does.
func (t *task) heldAllTheWhile(o *op) {
	for _, d := range t.deliveries {
		if !d.loose && d.Mono < o.Mono && !d.settledBefore(o.to) && t.until(d, o.Mono) > o.to {
			t.offend(verdict.Wrong, "%s said that it does not run, while attempt %d was held", o.Op, d.Attempt)
			return
		}
	}
}
