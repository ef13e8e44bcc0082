package workflow

import (
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/store"
)

// traces are those in which workers recorded the attempts whose ends a transition takes, by unit; nil
// for none. They are not stored: what a later step of the workflow makes has none.
type traces map[int]*store.Trace

// learn takes what the ack of a unit says of its trace; g may be nil.
func (t *traces) learn(unit int, g *graph.Growth) {
	if g == nil || g.Trace == nil {
		return
	}
	if *t == nil {
		*t = make(traces)
	}
	(*t)[unit] = g.Trace
}

// startOf is that of the attempt whose end started a step: the last to end of those that it waited for,
// or the one from which it grew. nil when it was not recorded.
func (t traces) startOf(w *Workflow, n *node) (start *store.Trace) {
	if len(t) == 0 {
		return nil
	}
	var last int64
	look := func(step int) {
		of := &w.of().steps[step]
		for unit := of.first; unit < of.first+of.units; unit++ {
			if from, order := t[unit], w.Units[unit].Order; from != nil && order >= last {
				start, last = from, order
			}
		}
	}
	for _, e := range n.after {
		look(e.step)
		if e.grown {
			for _, child := range w.of().steps[e.step].grew {
				look(child)
			}
		}
	}
	for _, child := range n.grew { // of a unit that goes on
		look(child)
	}
	if n.parent >= 0 {
		look(n.parent)
	}
	return start
}
