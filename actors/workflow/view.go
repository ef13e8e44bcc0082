package workflow

import (
	"time"

	"github.com/ddq-io/ddq/actors/workflow/cell"
	"github.com/ddq-io/ddq/actors/workflow/graph"
)

func (w *Workflow) counts() (n [unitStates]int) {
	for i := range w.Units {
		n[w.Units[i].State]++
	}
	return n
}

func (w *Workflow) undoFailed() (names []string) {
	for unit := range w.Units {
		if w.Units[unit].State == UnitUndoFailed && len(names) < MaxLateSignals {
			names = append(names, w.of().unitNamed(unit))
		}
	}
	return names
}

// result is what the workflow returned, once it is done: the result of the step that its
// definition names, or of the one that ended last.
func (w *Workflow) result() Value {
	if w.Phase != Done {
		return Value{}
	}
	var last *Unit
	for unit := range w.Units {
		u := &w.Units[unit]
		if u.State != UnitDone || w.Def.ResultOf != "" && w.of().find(unit).name != w.Def.ResultOf {
			continue
		}
		if last == nil || u.Order > last.Order {
			last = u
		}
	}
	if last == nil {
		return Value{}
	}
	return last.Value
}

// failure is the error of the step that failed first.
func (w *Workflow) failure() string {
	if w.Cause != CauseStep {
		return ""
	}
	if i, there := w.of().byID[graph.StepOf(w.Failed)]; there {
		for unit := range w.of().steps[i].units {
			if at := w.of().steps[i].first + unit; w.of().unitNamed(at) == w.Failed {
				return w.Units[at].Error
			}
		}
	}
	return ""
}

// Status is the workflow as its header says; retention is that of the topic.
func (s *Stored) Status(topic string, retention time.Duration) Status {
	w, b := s.w, &s.body
	status := Status{
		ID: w.ID, Topic: topic, Version: s.Cell.Version, Name: b.Name, Labels: cell.Attributes(b.Labels),
		State: w.State(), Cause: w.Cause, FailedStep: w.Failed, Error: string(b.Error), PausedBy: w.PausedBy, Note: w.Note,
		Created: w.Created, Started: w.Started, Ended: w.Ended, Starts: w.Starts,
		Run: w.Run, UndoFailed: b.UndoFailed, LateSignals: w.Late, ResultSize: int(b.ResultSize),
	}
	for i := range min(len(b.Counts), len(status.Units)) {
		status.Units[i] = int(b.Counts[i])
	}
	if !w.Phase.Open() {
		if b.RetentionMs > 0 {
			retention = time.Duration(b.RetentionMs) * time.Millisecond
		}
		status.Expires = expiryOf(w.Ended, retention)
	} else if b.TimeoutMs > 0 {
		status.Timeout = w.Started.Add(time.Duration(b.TimeoutMs) * time.Millisecond)
	}
	return status
}

// StepStatuses are the units of a workflow, in order.
func (w *Workflow) StepStatuses() []StepStatus {
	list := make([]StepStatus, 0, len(w.Units))
	g := w.of()
	for i := range g.steps {
		n := &g.steps[i]
		for unit := n.first; unit < n.first+n.units; unit++ {
			list = append(list, w.stepStatus(n, unit))
		}
	}
	return list
}

func (w *Workflow) stepStatus(n *node, unit int) StepStatus {
	u := &w.Units[unit]
	s := StepStatus{
		Name: n.name, Copy: n.copyOf(unit), Kind: n.Step.Kind(),
		State: u.State, Try: u.Try, Why: u.Why, WhyStep: u.WhyStep, Error: u.Error, Made: u.Made, Begun: u.Begun, Ended: u.Ended, Until: u.Until,
		ResultSize: u.Value.Size, Result: u.Value.Bytes,
	}
	g := w.of()
	if u.Suspended {
		s.Why, s.WhyStep = WhySuspended, w.awaited(n, unit)
	}
	for _, e := range n.after {
		s.After = append(s.After, graph.After{Step: g.steps[e.step].name, On: e.on, Grown: e.grown})
	}
	if n.parent >= 0 {
		s.Grew = g.steps[n.parent].name
	}
	switch {
	case n.Wait != nil:
		s.Signal = n.Wait.Signal
	case n.Child != nil:
		s.Topic = n.Child.Topic
		if u.Try > 0 {
			s.Task = tasks{w}.child(unit).ID
		}
	default:
		s.Topic = n.Task.Topic
		if u.Try > 0 && !u.Suspended {
			s.Task = tasks{w}.of(unit).ID
		}
	}
	if u.State == UnitUndoing || u.State == UnitUndoFailed {
		s.Task, s.Topic = tasks{w}.of(unit).ID, n.Undo.Topic
	}
	return s
}

// Result is what the workflow returned; empty while it is not done.
func (w *Workflow) Result() Value { return w.result() }

// CopyOf is a unit with its number.
type CopyOf struct {
	Copy int // from 1; 0: the step has no copies
	Unit
}

// UnitsOf are the units of a step.
func (w *Workflow) UnitsOf(step string) (units []CopyOf, there bool) {
	i, there := w.of().byID[step]
	if !there {
		return nil, false
	}
	n := &w.of().steps[i]
	for unit := n.first; unit < n.first+n.units; unit++ {
		units = append(units, CopyOf{n.copyOf(unit), w.Units[unit]})
	}
	return units, true
}

// EndedSince is how many units got into states in which nothing happens by itself any more.
func EndedSince(before, after *Workflow) map[UnitState]int {
	n := make(map[UnitState]int)
	was, is := before.counts(), after.counts()
	for state := range is {
		if more := is[state] - was[state]; more > 0 && !UnitState(state).Open() {
			n[UnitState(state)] = more
		}
	}
	return n
}
