package checker

import "github.com/ddq-io/ddq/bench/ledger"

// heal ends the last fault of a name.
func (h *History) heal(e *ledger.Event) {
	for i := len(h.faults) - 1; i >= 0; i-- {
		if f := &h.faults[i]; f.Name == e.Fault && f.To == never {
			f.To = e.Mono
			return
		}
	}
}
