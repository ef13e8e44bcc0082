package workflow

import (
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
)

// given is how a unit ended of those that another one waited for.
type given struct {
	step  string
	copy  int
	end   store.StepEnd
	value Value
	err   string
}

var stepEnds = [unitStates]store.StepEnd{
	UnitDone: store.StepDone, UnitUndone: store.StepDone, UnitUndoFailed: store.StepDone, UnitUndoing: store.StepDone,
	UnitFailed: store.StepFailed, UnitCancelled: store.StepCancelled, UnitSkipped: store.StepSkipped,
}

// inputs finds what tasks are told of the steps before theirs.
type inputs struct{ w *Workflow }

// of are those of the task of a unit; the task of an undo is told of its own step.
func (in inputs) of(m *Make) (list []given) {
	n := in.w.of().find(m.Unit)
	if m.Undo {
		return in.give(list, n, m.Unit)
	}
	for _, e := range n.after {
		list = in.giveAll(list, e.step, e.grown)
	}
	for _, child := range n.grew { // of a unit that goes on
		if in.w.of().grewFrom(child, n, m.Unit) {
			list = in.giveAll(list, child, false)
		}
	}
	return list
}

// giveAll appends the copies of a step, and what grew from it.
func (in inputs) giveAll(list []given, i int, grown bool) []given {
	n := &in.w.of().steps[i]
	for unit := n.first; unit < n.first+n.units && !n.empty(); unit++ {
		list = in.give(list, n, unit)
	}
	if grown {
		for _, child := range n.grew {
			list = in.giveAll(list, child, true)
		}
	}
	return list
}

func (in inputs) give(list []given, n *node, unit int) []given {
	u := &in.w.Units[unit]
	if u.State == UnitWaiting || u.State == UnitMade {
		return list // with need, not all have ended
	}
	return append(list, given{step: n.name, copy: n.copyOf(unit), end: stepEnds[u.State], value: u.Value, err: u.failure()})
}

// failure says why a unit failed, as others are told.
func (u *Unit) failure() string {
	switch {
	case u.State != UnitFailed:
		return ""
	case u.Error == "":
		return u.Why.String()
	}
	return u.Error[:min(len(u.Error), maxToldError)]
}

// task makes the task of a unit, or of its undo.
func (w *Workflow) task(m *Make, out *Effects, x Context) *store.Task {
	n, u := w.of().find(m.Unit), &w.Units[m.Unit]
	template := n.Task
	if m.Undo {
		template = n.Undo
	}
	t := template.Task
	goesOn := u.Begun != 0 && !m.Undo
	t.ID, t.Created, t.Due, t.Indexed = m.ID, x.Now, x.Now.Add(template.Delay), x.Topic.Indexed
	if goesOn {
		t.Due = x.Now
	}
	if template.ExpireAfter > 0 {
		t.Expires = t.Due.Add(template.ExpireAfter)
	}
	if m.Trace != nil {
		t.Trace = m.Trace
	}
	t.Tells = CellID(w.ID)
	t.StepOf = &store.StepOf{
		Workflow: w.ID, Kind: w.Def.Name, Name: n.name, Copy: n.copyOf(m.Unit), Try: u.Try, Starts: w.Starts, Undo: m.Undo,
	}
	if m.Topic != "" {
		t.Tells, t.StepOf.Topic = homeID(x.Topic.Name, w.ID), x.Topic.Name
	}
	t.RunOf = w.Run.ofTask()
	if n.Input {
		t.StepOf.Input = x.valueOf(w.input(), out)
	}
	w.tellInputs(t.StepOf, m, out, x)
	if !m.Undo {
		t.StepOf.Journal = record.DecodeJournal(x.valueOf(u.Journal, out))
	}
	return &t
}

// tellInputs tells a task how those before it ended, and what they returned unless that is too
// large.
func (w *Workflow) tellInputs(s *store.StepOf, m *Make, out *Effects, x Context) {
	list, size := inputs{w}.of(m), 0
	for i := range list {
		size += list[i].value.Size
	}
	s.Cut = size > MaxInputs
	for i := range list {
		in := &list[i]
		told := store.StepInput{Step: in.step, Copy: in.copy, End: in.end, Size: in.value.Size, Error: in.err}
		if !s.Cut {
			told.Result = x.valueOf(in.value, out)
		}
		s.Inputs = append(s.Inputs, told)
	}
}

func (x *Context) valueOf(v Value, out *Effects) []byte {
	if v.Part == 0 {
		return v.Bytes
	}
	for i := range out.Parts {
		if out.Parts[i].Number == v.Part {
			return out.Parts[i].Body
		}
	}
	return x.Values[v.Part]
}
