package checker

import "github.com/ddq-io/ddq/bench/ledger"

// span is the time of a fault, on the monotonic clock.
type span struct {
	name     string
	from, to int64
}

// heal ends the last fault of a name.
func (h *History) heal(e *ledger.Event) {
	for i := len(h.faults) - 1; i >= 0; i-- {
		if f := &h.faults[i]; f.name == e.Fault && f.to == never {
			f.to = e.Mono
			return
		}
	}
}
