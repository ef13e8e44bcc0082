package checker

import (
	"time"

	"github.com/ddq-io/ddq/bench/ledger"
)

// span is a part of a run, on the monotonic clock.
type span struct {
	name     string
	from, to int64
	fault    bool
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

// spans are the phases of the whole run, in order.
func (h *History) spans() []span {
	var spans []span
	at := h.from
	name := "calm"
	cut := func(to int64) {
		if name != "calm" && to > at+settling.Nanoseconds() {
			spans = append(spans, span{name: name, from: at, to: at + settling.Nanoseconds()})
			at, name = at+settling.Nanoseconds(), "calm"
		}
		if to > at {
			spans = append(spans, span{name: name, from: at, to: to})
		}
	}
	for _, f := range h.faults {
		if f.from < at {
			continue // within another one
		}
		cut(f.from)
		end := min(f.to, h.to)
		spans = append(spans, span{f.name, f.from, end, true})
		at, name = end, "after "+f.name
	}
	cut(h.to + 1)
	return spans
}

// settling is how long after a fault its aftermath is told apart from calm.
const settling = 30 * time.Second

// phaseOf is the index of the phase that a wait belongs to: a fault that it lived
// through, else the one in which it began. -1 for none.
func phaseOf(spans []span, from, to int64) int {
	began := -1
	for i, s := range spans {
		if to < s.from || from >= s.to {
			continue
		}
		if s.fault {
			return i
		}
		if began < 0 {
			began = i
		}
	}
	return began
}
