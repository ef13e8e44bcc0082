package checker

import (
	"slices"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// results: what is told of a done task is what the worker said that acked it.
func results(t *task) {
	if f := t.found; f != nil && f.State == "done" {
		t.given(f)
	}
	for _, o := range t.waits {
		if o.did() && o.answer.State == "done" {
			t.given(o.answer)
		}
	}
}

// given asks whether a worker gave the result that e tells.
func (t *task) given(e *ledger.Event) {
	if ack := t.accepted(ledger.Ack); ack != nil && e.Output != ack.Output {
		t.offend(verdict.Wrong, "the result is not that of attempt %d, which was acked", ack.settled.Attempt)
		return
	}
	asked := slices.ContainsFunc(t.settles, func(o *op) bool {
		return o.Op == ledger.Ack && o.may() && o.Mono < e.Mono && o.Output == e.Output
	})
	if !asked && e.Output != "" {
		t.offend(verdict.Wrong, "done with a result that no worker gave")
	}
}
