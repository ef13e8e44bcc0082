package workflow

import (
	"cmp"

	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/store"
)

// traces are those in which workers recorded the attempts whose ends a transition takes, by unit; nil
// for none. They are not stored: what a later step of the workflow makes has none.
type traces map[int]*store.Trace

// traceOf is that of what an end said; nil when it said none.
func traceOf(g *graph.Growth) *store.Trace {
	if g == nil {
		return nil
	}
	return g.Trace
}

// learn takes in which trace a unit ended; nil: it is not known.
func (t *traces) learn(unit int, trace *store.Trace) {
	if trace == nil {
		return
	}
	if *t == nil {
		*t = make(traces)
	}
	(*t)[unit] = trace
}

// last is that of the unit which ended last; nil when none has any.
func (t traces) last(w *Workflow) *store.Trace {
	l := latest{traces: t, w: w, unit: -1}
	for unit := range t {
		l.look(unit)
	}
	return t[l.unit]
}

// startOf is that of the attempt whose end started a step: the last to end of those that it waited for,
// or the one from which it grew. nil when it was not recorded.
func (t traces) startOf(w *Workflow, n *node) *store.Trace {
	if len(t) == 0 {
		return nil
	}
	l := latest{traces: t, w: w, unit: -1}
	for _, e := range n.after {
		l.lookAt(e.step)
		if e.grown {
			for _, child := range w.of().steps[e.step].grew {
				l.lookAt(child)
			}
		}
	}
	for _, child := range n.grew { // of a unit that goes on
		l.lookAt(child)
	}
	if n.parent >= 0 {
		l.lookAt(n.parent)
	}
	return t[l.unit]
}

// latest looks for the unit that ended last of those that have a trace.
type latest struct {
	traces
	w    *Workflow
	unit int // -1: none yet
}

func (l *latest) lookAt(step int) {
	of := &l.w.of().steps[step]
	for unit := of.first; unit < of.first+of.units; unit++ {
		l.look(unit)
	}
}

func (l *latest) look(unit int) {
	if l.traces[unit] == nil {
		return
	}
	if l.unit < 0 || l.endedAfter(unit, l.unit) {
		l.unit = unit
	}
}

// endedAfter reports whether a unit ended after another one. Of one moment, those that are done have
// their order.
func (l *latest) endedAfter(unit, other int) bool {
	u, o := &l.w.Units[unit], &l.w.Units[other]
	return cmp.Or(cmp.Compare(u.Ended, o.Ended), cmp.Compare(u.Order, o.Order), cmp.Compare(unit, other)) > 0
}
