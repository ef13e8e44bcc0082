package workflow

import (
	"slices"

	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/actors/workflow/refusal"
	"github.com/ddq-io/ddq/store"
)

// ended takes the end of a task or a child. One of a making that is over, or of another
// workflow, changes nothing: so an end that is told twice is taken once.
func (p *transition) ended(e Ended) {
	unit, open := p.unitOf(e.Task)
	if !open {
		return
	}
	p.traces.learn(unit, e.Trace)
	u := &p.w.Units[unit]
	if u.State == UnitUndoing {
		p.undone(u, e)
		return
	}
	if e.Growth.Suspends() && !u.Asked {
		p.suspend(unit, e)
		return
	}
	u.Begun, u.Error = timeOf(u.Begun, e.Begun), e.Error
	switch {
	case e.Outcome == UnitDone && !e.Growth.Suspends():
		u.Why = WhyNone
		p.done(unit, p.value(e.Result))
		p.grow(unit, e.Growth)
	case u.Asked:
		p.end(unit, UnitCancelled)
	case p.isWithdrawn(&e):
		u.Why = WhyWorkflowFailed
		p.end(unit, UnitCancelled)
	default:
		u.Why = e.Why
		p.failed(unit)
	}
	p.w.Units[unit].Ended = timeOf(e.At, p.Now) // when it ended, not when it is taken
}

func (p *transition) undone(u *Unit, e Ended) {
	u.State, u.Asked = UnitUndone, false
	if e.Outcome != UnitDone {
		u.State, u.Error = UnitUndoFailed, e.Error
	}
}

// unitOf is the unit whose task an id is of.
func (p *transition) unitOf(task string) (unit int, open bool) {
	if p.ids == nil {
		p.ids = make(map[string]int)
		for i := range p.w.Units {
			if p.w.Units[i].hasTask() {
				p.ids[tasks{p.w}.of(i).ID] = i
			}
		}
	}
	unit, there := p.ids[task]
	if !there || unit >= len(p.w.Units) {
		return 0, false
	}
	u := &p.w.Units[unit]
	open = u.hasTask() && tasks{p.w}.of(unit).ID == task
	return unit, open
}

func (p *transition) done(unit int, v Value) {
	p.w.Ends++
	u := &p.w.Units[unit]
	u.Order, u.Value = p.w.Ends, v
	p.forgetJournal(u)
	p.end(unit, UnitDone)
}

func (p *transition) failed(unit int) {
	p.end(unit, UnitFailed)
	if n := p.w.of().find(unit); !n.IgnoreFailure {
		p.fail(CauseStep, p.w.of().unitNamed(unit))
	}
}

func (p *transition) end(unit int, s UnitState) {
	u := &p.w.Units[unit]
	u.State, u.Ended, u.Until, u.Suspended = s, p.Now, 0, false
}

// fail begins the end of the workflow.
func (p *transition) fail(cause Cause, step string) {
	w := p.w
	if w.Phase != Running && (w.Phase != Failing || cause == CauseStep) {
		return
	}
	w.Phase, w.Cause, w.Failed = Failing, cause, step
	if w.Def.Failure == graph.CancelRunning {
		w.AskTo = w.Serial
	}
	if w.Def.Failure != graph.CarryOn || cause != CauseStep {
		p.endWaits(WhyWorkflowFailed)
	}
}

// endWaits ends waits: there is nothing in them to be finished.
func (p *transition) endWaits(why Why) {
	for unit := range p.w.Units {
		if u := &p.w.Units[unit]; u.State == UnitMade && p.w.of().find(unit).Wait != nil {
			u.Asked, u.Why = true, why
			p.end(unit, UnitCancelled)
		}
	}
}

func (p *transition) cancel(e Cancel) *refusal.Error {
	w := p.w
	switch w.Phase {
	case Running, Failing:
	case Cancelling, Undoing:
		return nil
	default:
		return finished(w)
	}
	w.Phase, w.Cancelled, w.Note, w.IsPaused, w.AskTo = Cancelling, true, e.Note, false, w.Serial
	p.endWaits(WhyCancelled)
	return nil
}

func (p *transition) pause(e Pause) *refusal.Error {
	if !p.w.Phase.Open() {
		return finished(p.w)
	}
	p.w.IsPaused, p.w.PausedBy, p.w.Note = true, e.By, e.Note
	p.orderAll(AskedToPause)
	return nil
}

func (p *transition) resume(e Resume) *refusal.Error {
	if !p.w.Phase.Open() {
		return finished(p.w)
	}
	p.w.IsPaused, p.w.PausedBy, p.w.Note = false, "", e.Note
	p.orderAll(AskedToResume)
	return nil
}

func finished(w *Workflow) *refusal.Error {
	return &refusal.Error{Reason: refusal.WorkflowFinished, Field: "id", State: w.State().String(), Message: "workflow " + w.ID + " is " + w.State().String()}
}

// close ends a workflow in which nothing is open any more, or undoes what is done of one that
// failed. It reports whether something follows.
func (p *settling) close() bool {
	w := p.w
	if !w.Phase.Open() || w.IsPaused || p.out.More || slices.ContainsFunc(w.Units, func(u Unit) bool { return u.State.Open() }) {
		return false
	}
	if w.Phase == Running {
		if name, bad := (conditions{p.w}).unsound(); bad {
			p.fail(CauseStep, name)
		}
	}
	switch {
	case w.Phase == Running && w.Again != nil:
		p.startAgain()
		return true
	case w.Phase == Running:
		p.finish(Done)
	case w.Def.Undo && p.undoNext():
		w.Phase = Undoing
	case w.Cancelled:
		p.finish(Cancelled)
	default:
		p.finish(Failed)
	}
	return false
}

// undoNext makes the undo of the unit that ended last of those that are done, if there is one.
func (p *settling) undoNext() bool {
	last := -1
	for unit := range p.w.Units {
		u := &p.w.Units[unit]
		if u.State == UnitDone && p.w.of().find(unit).Undo != nil && (last < 0 || u.Order > p.w.Units[last].Order) {
			last = unit
		}
	}
	if last < 0 {
		return false
	}
	u := &p.w.Units[last]
	u.State, u.Serial = UnitUndoing, p.w.number()
	p.out.Make = append(p.out.Make, Make{Unit: last, TaskRef: p.freeTask(last), Undo: true, Trace: p.traces.last(p.w)})
	return true
}

func (p *transition) finish(s State) {
	p.w.Phase, p.w.Ended, p.out.Ended, p.out.Trace = s, p.Now, true, p.traces.last(p.w)
	p.w.IsPaused = false
}

// startAgain begins the workflow anew, without what it was before.
func (p *settling) startAgain() {
	w := p.w
	p.forget(w.Input)
	w.Input, w.Again = *w.Again, nil
	p.dropGrown(func(*Grown) bool { return true })
	for i := range w.Units {
		p.forgetUnit(&w.Units[i])
		w.Units[i] = Unit{}
	}
	w.Starts++
	w.Started, w.AskTo = p.Now, 0
}

// expire deletes a workflow that has been kept for long enough, some parts at a time.
func (p *settling) expire() {
	if p.Now < p.expires() && !p.w.Doomed {
		p.out.Wake = p.expires()
		return
	}
	p.remove()
}

func (p *settling) expires() store.Millis {
	if keep := p.w.Def.Retention; keep > 0 {
		return p.w.Ended.Add(keep)
	}
	return expiryOf(p.w.Ended, p.Retention)
}

func (p *transition) delete() *refusal.Error {
	if p.w.Phase.Open() {
		return &refusal.Error{Reason: refusal.WorkflowOpen, Field: "id", State: p.w.State().String(), Message: "workflow " + p.w.ID + " is " + p.w.State().String()}
	}
	p.w.Doomed = true
	return nil
}

// remove deletes a workflow once all of its parts are.
func (p *settling) remove() {
	w := p.w
	p.dropGrown(func(*Grown) bool { return true })
	for i := range w.Units {
		p.forgetUnit(&w.Units[i])
		w.Units[i].Value, w.Units[i].Journal = Value{}, Value{}
	}
	p.forget(w.Input)
	if w.Again != nil {
		p.forget(*w.Again)
	}
	for i := range w.Kept {
		p.forget(w.Kept[i].Value)
	}
	w.Input, w.Again, w.Kept, w.Doomed = Value{}, nil, nil, true
	p.out.Gone = len(w.Trash) <= dropsAStep
	p.out.Wake = 0
}
