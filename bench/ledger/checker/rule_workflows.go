package checker

import (
	"slices"
	"strings"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// stranded: a workflow that was submitted is there at the end, and has ended. It says that it was
// cancelled only when somebody asked for it.
func stranded(w *workflow) {
	if len(w.submits) == 0 || !w.Audited {
		return
	}
	submitted := slices.ContainsFunc(w.submits, (*op).did)
	asked := slices.ContainsFunc(w.cancels, (*op).may)
	switch f := w.found; {
	case f == nil && submitted:
		w.offend(verdict.Stranded, "submitted, and gone")
	case f == nil:
	case !slices.Contains([]string{ledger.FlowDone, ledger.FlowFailed, ledger.FlowCancelled}, f.State) && !w.waits():
		w.offend(verdict.Stranded, "%s at the end", f.State)
	case f.State == ledger.FlowCancelled && !asked:
		w.offend(verdict.Wrong, "cancelled, and nobody asked for it")
	}
}

// waits reports whether the workflow waits for a time that is as far off as a clock was set back:
// when its task is due, which was made by the clock of before, a delay of its own, or the moment at
// which a child of it was made, that has not begun since.
func (w *workflow) waits() bool {
	if !w.clock.WasSet() {
		return false
	}
	for key, c := range w.workflows {
		if key != w.topic+"/"+w.id && !strings.HasPrefix(key, w.topic+"/"+w.id+"/") {
			continue
		}
		unbegun := c.id != w.id && c.found != nil && c.found.State == ledger.FlowRunning && len(c.tasks) == 0
		if unbegun || slices.ContainsFunc(c.tasks, (*story).isToCome) {
			return true
		}
	}
	return w.flow.Graph != nil && slices.ContainsFunc(w.flow.Graph.Steps, func(s ledger.Step) bool { return s.DelayMS > 0 })
}

// isToCome reports whether the task was not due yet at the end.
func (s *story) isToCome() bool {
	return s.found != nil && (s.found.State == "scheduled" || s.found.State == "retrying")
}

// untimely: no worker has the task of a step before that can have been made.
func untimely(w *workflow) {
	if w.flow.Graph == nil || w.mayBeUndone() {
		return
	}
	for of, tasks := range w.makings {
		if of.undo {
			continue
		}
		from := w.flow.Beginable(of.step, of.starts)
		for _, s := range tasks {
			if first := s.begin(); first < from {
				w.offend(verdict.Untimely, "%s began before what it waits for", of.step)
				return
			}
		}
	}
}

// grownWhole: what an ack that was accepted says of the workflow is so at the end.
func grownWhole(w *workflow) {
	root := w.root(w.course)
	if w.found == nil || w.mayBeUndone() || len(root.redos) > 0 {
		return
	}
	for _, s := range w.tasks {
		ack := s.accepted(ledger.Ack)
		if ack == nil || s.making.Undo || s.making.Starts != w.latestStart() {
			continue
		}
		if st := w.standing(s.making.Step, s.making.Copy); !ack.Suspends && (st == nil || !slices.Contains([]string{ledger.StepDone, ledger.StepUndoing, ledger.StepUndone, ledger.StepUndoFailed}, st.State)) {
			w.offend(verdict.Half, "%s was acked, and the workflow does not have it as done", s.making.Step)
			return
		}
		for _, g := range ack.Grow {
			if w.standing(s.making.Step+"."+g.Name, g.FirstNumber()) == nil {
				w.offend(verdict.Half, "%s was acked, and %s did not grow from it", s.making.Step, g.Name)
				return
			}
		}
	}
}

// latestStart is how often the workflow began, as far as its tasks tell.
func (w *workflow) latestStart() (n int) {
	for _, s := range w.tasks {
		n = max(n, s.making.Starts)
	}
	return n
}

// standing is how a step stands at the end, nil when the workflow does not have it.
func (w *workflow) standing(step string, number int) *ledger.StepStanding {
	i := slices.IndexFunc(w.found.Steps, func(st ledger.StepStanding) bool { return st.Step == step && st.Copy == number })
	if i < 0 {
		return nil
	}
	return &w.found.Steps[i]
}

// misled: what a task is told of the steps before it is what they returned, of each copy once.
func misled(w *workflow) {
	if w.flow.Graph == nil || w.mayBeUndone() {
		return
	}
	for of, tasks := range w.makings {
		for _, s := range tasks {
			for _, d := range s.deliveries {
				if d.Making == nil {
					continue
				}
				if why := w.mistold(of, d); why != "" {
					w.offend(verdict.Misled, "attempt %d of %s was told of %s", d.Attempt, of.step, why)
					return
				}
			}
		}
	}
}

// mistold is of what a delivery was told what is not so; empty: of nothing.
func (w *workflow) mistold(of making, d *delivery) string {
	counts := map[string]int{}
	for _, in := range d.Making.Inputs {
		counts[in.Step]++
		s, _ := w.flow.Step(in.Step)
		if s == nil {
			return in.Step + ", which there is not"
		}
		if s.IsTask() && in.State == ledger.StepDone && !w.returned(in, of.starts, d.Mono) {
			return "a result of " + in.Step + " that it did not return"
		}
	}
	s, within := w.flow.Step(of.step)
	if of.undo || s == nil || s.Need > 0 {
		return ""
	}
	for _, c := range s.After {
		before, _ := w.flow.Step(within + c.Step)
		if before == nil || c.On != "" {
			continue
		}
		if n := counts[within+c.Step]; n != len(before.Numbers()) {
			return within + c.Step + " a wrong number of times"
		}
	}
	return ""
}

// returned reports whether a worker may have acked a copy of a step with a result, or somebody
// skipped the step with it.
func (w *workflow) returned(in ledger.Input, starts int, before int64) bool {
	for _, s := range w.makings[making{in.Step, in.Copy, starts, false}] {
		if slices.ContainsFunc(s.settles, func(o *op) bool { return o.Op == ledger.Ack && o.may() && o.Mono < before && o.Output == in.Sum }) {
			return true
		}
	}
	return slices.ContainsFunc(w.redos, func(o *op) bool { return o.Op == ledger.SkipStep && o.may() && o.Step == in.Step })
}

// unwound: where a workflow that does not come about is to be undone, each step that was done is,
// after all has ended, and the last end first.
func unwound(w *workflow) {
	if w.flow.Graph == nil || !w.flow.Graph.Undo || w.mayBeUndone() || len(w.redos) > 0 {
		return
	}
	var undos []*undo
	for of, tasks := range w.makings {
		s, _ := w.flow.Step(of.step)
		if of.undo || s == nil || !s.Undo {
			continue
		}
		for _, task := range tasks {
			if ack := task.accepted(ledger.Ack); ack != nil && !ack.Suspends {
				undos = append(undos, &undo{of, task.ackable((*op).ends), ack.to, w.makings[making{of.step, of.copy, of.starts, true}]})
			}
		}
	}
	for _, a := range undos {
		w.undoneRight(a, undos)
	}
}

// undo is a step that was done between two moments, and the tasks that undo it.
type undo struct {
	making
	from, to int64
	tasks    []*story
}

// ackable is the earliest that the task can have been acked by one of some acks.
func (s *story) ackable(those func(*op) bool) int64 {
	first := int64(never)
	for _, o := range s.settles {
		if o.Op == ledger.Ack && those(o) {
			first = min(first, o.Mono)
		}
	}
	return first
}

// undoneRight asks whether a step was undone at last, and in its turn.
func (w *workflow) undoneRight(a *undo, all []*undo) {
	if f := w.found; f != nil && (f.State == ledger.FlowFailed || f.State == ledger.FlowCancelled) {
		if st := w.standing(a.step, a.copy); st == nil || st.State != ledger.StepUndone && st.State != ledger.StepUndoFailed {
			w.offend(verdict.Unwound, "%s was done, and not undone", a.step)
		}
	}
	for _, task := range a.tasks {
		if task.begin() < a.from {
			w.offend(verdict.Unwound, "the undo of %s began before it was done", a.step)
		}
		for _, s := range w.tasks {
			if !s.making.Undo && s.making.Starts == a.starts && len(s.deliveries) > 0 && s.firstHeld(w) > task.begin() {
				w.offend(verdict.Unwound, "%s began after the undo of %s", s.making.Step, a.step)
			}
		}
		for _, b := range all {
			if b.from > a.to && b.overBy() > task.begin() {
				w.offend(verdict.Unwound, "the undo of %s began before that of %s was over", a.step, b.step)
			}
		}
	}
}

// firstHeld is the earliest that the first hold of the task can have begun.
func (s *story) firstHeld(w *workflow) int64 { return w.evidence.task(s).granted(s.deliveries[0]) }

// overBy is the earliest that an undo can have been over.
func (u *undo) overBy() int64 {
	first := int64(never)
	for _, s := range u.tasks {
		for _, o := range s.settles {
			if (o.Op == ledger.Ack || o.Op == ledger.Nack) && o.may() {
				first = min(first, o.Mono)
			}
		}
		if len(s.deliveries) > 1 { // its holds may have run out
			first = min(first, s.deliveries[len(s.deliveries)-1].Mono)
		}
		if s.found != nil && s.found.State == "dead" {
			first = min(first, s.begin())
		}
	}
	return first
}

// zombie: no step begins once a cancel of the workflow was answered, but for undos. The store's
// books say when a hold began. The retry of a step may have been held ahead of its time by then,
// and its node not have heard.
func zombie(w *workflow) {
	root := w.root(w.course)
	if w.mayBeUndone() || len(root.redos) > 0 {
		return
	}
	for _, o := range root.cancels {
		if !o.did() {
			continue
		}
		answered := w.clock.Upper(o.Mono, o.answer)
		for _, s := range w.tasks {
			if s.making.Undo || s.found == nil || w.clock.WasSet() {
				continue
			}
			for _, a := range s.found.History {
				ahead := int64(0)
				if a.Number > 1 {
					ahead = heldAhead
				}
				if a.Started > answered+ahead {
					w.offend(verdict.Zombie, "%s began %d ms after a cancel was answered", s.making.Step, a.Started-answered)
					return
				}
			}
		}
	}
}

// enqueued: what an ack enqueues is there if and only if the ack was accepted, and once.
func enqueued(ev *evidence) {
	for sum, acks := range ev.acks {
		tasks := ev.next[sum]
		complain := func(v verdict.Violation, why string, args ...any) {
			var shown []*ledger.Event
			for _, o := range acks {
				shown = append(shown, o.Event)
			}
			for _, s := range tasks {
				shown = append(shown, s.events...)
			}
			ev.offend(v, acks[0].Topic, acks[0].Task, shown, why, args...)
		}
		undone := slices.ContainsFunc(acks, func(o *op) bool { return o.excused }) || slices.ContainsFunc(tasks, (*story).loose)
		accepted := slices.ContainsFunc(acks, func(o *op) bool { return o.did() && o.settled != nil && !o.settled.loose })
		switch {
		case undone:
		case accepted && len(tasks) == 0 && ev.Audited:
			complain(verdict.Half, "acked, and a task that the ack enqueues is nowhere")
		case len(tasks) > 0 && !slices.ContainsFunc(acks, (*op).may):
			complain(verdict.Half, "refused, and a task that the ack would have enqueued is there")
		case len(tasks) > 1:
			complain(verdict.Redone, "a task that the ack enqueues is there as %s and as %s", tasks[0].id, tasks[1].id)
		}
	}
}
