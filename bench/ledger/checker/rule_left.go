package checker

import (
	"slices"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// left looks at what is in the store at the end.
func left(t *task) {
	f := t.found
	if f == nil {
		return
	}
	switch f.State {
	case "scheduled", "ready", "retrying":
		if late := t.clock.Late(f, f.Due) / millisecond; late > t.stuckAfter {
			t.offend(verdict.Stuck, "%s at the end, %d ms after it was due", f.State, late)
		}
	case "running":
		if over := -f.HoldMS; over > t.stuckAfter {
			t.offend(verdict.Stuck, "running at the end, %d ms after its hold was over", over)
		}
	case "dead":
		t.rightlyDead(f)
	}
}

// rightlyDead asks whether the cause of death is true.
func (t *task) rightlyDead(f *ledger.Event) {
	switch f.Reason {
	case "permanent":
		for _, o := range t.settles {
			if o.Op == ledger.Nack && o.Final && o.may() {
				return
			}
		}
		t.offend(verdict.Wrong, "dead as permanent, though no worker said so")
	case "cancelled":
		if !slices.ContainsFunc(t.cancels, (*op).may) {
			t.offend(verdict.Wrong, "dead as cancelled, though nobody asked for it")
		}
	case "max_retries", "hold_expired":
		if f.Retries < f.MaxRetries {
			t.offend(verdict.Wrong, "dead as %s after %d retries of %d", f.Reason, f.Retries, f.MaxRetries)
		}
	default:
		t.offend(verdict.Wrong, "dead as %q", f.Reason)
	}
}
