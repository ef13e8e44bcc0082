package workflow

import (
	"slices"

	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/store"
)

// make makes what waits of a step, as far as its copies and this step of the workflow allow.
// It reports whether any of it has ended at once.
func (p *settling) make(i int) (ended bool) {
	n := &p.w.of().steps[i]
	open, began := 0, false
	for _, u := range n.unitsIn(p.w) {
		if u.State == UnitMade {
			open++
		}
		began = began || u.Try > 0
	}
	for unit := n.first; unit < n.first+n.units; unit++ {
		u := &p.w.Units[unit]
		if u.State != UnitWaiting {
			continue
		}
		if n.AtATime > 0 && open >= n.AtATime {
			break
		}
		if p.made >= makesAStep || p.bytes >= bytesAStep {
			p.out.More = true
			break
		}
		if !began && n.CancelRest {
			p.cancelRest(n)
		}
		began = true
		p.makeUnit(unit, n)
		if u.State == UnitMade {
			open++
		} else {
			ended = true
		}
	}
	return ended
}

func (p *settling) makeUnit(unit int, n *node) {
	u := &p.w.Units[unit]
	*u = Unit{State: UnitMade, Try: u.Try + 1, Made: p.Now, Serial: p.w.number(), Journal: u.Journal}
	switch {
	case n.empty():
		p.done(unit, Value{})
	case n.Wait != nil:
		p.beginWait(unit, n.Wait)
	case n.Child != nil:
		p.made += 2 + n.Child.Units()/pageUnits
		p.bytes += n.Child.Size()
		p.out.Begin = append(p.out.Begin, Begin{unit, p.freeChild(unit)})
	case conditions{p.w}.calls(n, unit): // of an earlier try, and retried as well
		u.Suspended = true
	default:
		p.makeTask(unit, n)
	}
}

func (p *settling) makeTask(unit int, n *node) {
	p.made++
	p.bytes += n.Task.Task.BodySize() + p.inputSize(n) + p.w.Units[unit].Journal.Size
	p.out.Make = append(p.out.Make, Make{Unit: unit, TaskRef: p.freeTask(unit), Trace: p.traces.startOf(p.w, n)})
}

// freeTask is the task of a unit, with an id that no other one has.
func (p *transition) freeTask(unit int) TaskRef {
	for {
		task := tasks{p.w}.of(unit)
		if !p.Avoid[task.ID] {
			return task
		}
		p.w.Units[unit].Serial = p.w.number()
	}
}

// freeChild is the child of a unit, with an id that no other workflow has.
func (p *transition) freeChild(unit int) ChildRef {
	for {
		child := tasks{p.w}.child(unit)
		if !p.Avoid[child.ID] {
			return child
		}
		u := &p.w.Units[unit]
		u.Marked, u.Serial = true, p.w.number()
	}
}

// inputSize is about how many bytes a task gets of those before it.
func (p *settling) inputSize(n *node) int {
	size := 0
	if n.Input {
		size = p.w.input().Size
	}
	for _, e := range n.after {
		size += p.valuesOf(e)
	}
	for _, child := range n.grew {
		size += p.valuesOf(edge{step: child})
	}
	return min(size, MaxInputs)
}

func (p *settling) valuesOf(e edge) int {
	size := 0
	n := &p.w.of().steps[e.step]
	for _, u := range n.unitsIn(p.w) {
		size += u.Value.Size
	}
	if e.grown {
		for _, child := range n.grew {
			size += p.valuesOf(edge{step: child, grown: true})
		}
	}
	return size
}

// cancelRest ends what a step waited for and has no need of any more. What was made in this step of
// the workflow never was: it is skipped. What that had cancelled in its turn stays cancelled, because
// this step may be met by it. So where two steps with cancel_rest could begin in one step of the
// workflow, and one of them is in the rest of the other, it matters which has its turn first, see
// visitAll: if it is the other one, the one in its rest does not begin, and cancels nothing.
func (p *settling) cancelRest(n *node) {
	for _, e := range n.after {
		p.endRest(e.step)
	}
}

// endRest ends what is open of a step.
func (p *settling) endRest(i int) {
	rest := &p.w.of().steps[i]
	for unit := rest.first; unit < rest.first+rest.units; unit++ {
		switch u := &p.w.Units[unit]; u.State {
		case UnitWaiting:
			u.State, u.Why, u.Ended = UnitSkipped, WhyRest, p.Now
			p.anew = true
		case UnitSkipped: // in the same step perhaps: which was first is no matter
			if u.Why != WhyLeftOut {
				u.Why, u.WhyStep = WhyRest, ""
			}
		case UnitMade:
			p.ask(unit, WhyRest)
		}
	}
}

// askAll asks units to end that are to, as many as fit into one step.
func (p *settling) askAll() {
	if p.w.AskTo == 0 {
		return
	}
	for unit := range p.w.Units {
		u := &p.w.Units[unit]
		if u.State != UnitMade || u.Asked || u.Serial > p.w.AskTo {
			continue
		}
		if len(p.out.Ask)+len(p.out.Orders) >= asksAStep {
			p.out.More = true
			return
		}
		p.ask(unit, p.whyAsked())
	}
}

func (p *settling) whyAsked() Why {
	if p.w.Cancelled {
		return WhyCancelled
	}
	return WhyWorkflowFailed
}

// ask has a unit end that is made.
func (p *settling) ask(unit int, why Why) {
	u, n := &p.w.Units[unit], p.w.of().find(unit)
	if u.Asked {
		return
	}
	if u.Serial > p.first && !u.Suspended {
		p.unmake(unit, why)
		return
	}
	u.Asked, u.Why = true, why
	switch {
	case n.Wait != nil:
		p.end(unit, UnitCancelled)
		p.anew = true
	case u.Suspended:
		p.stop(unit, n, why)
	case n.Child != nil:
		p.order(unit, AskedToEnd)
	default:
		p.out.Ask = append(p.out.Ask, tasks{p.w}.of(unit))
	}
}

// unmake takes back what this step of the workflow made: it never was.
func (p *settling) unmake(unit int, why Why) {
	p.out.Make = slices.DeleteFunc(p.out.Make, func(m Make) bool { return m.Unit == unit })
	p.out.Begin = slices.DeleteFunc(p.out.Begin, func(b Begin) bool { return b.Unit == unit })
	p.anew = true
	u := &p.w.Units[unit]
	p.forgetJournal(u)
	if u.Begun != 0 { // it was suspended, and is made again
		u.Why = why
		p.end(unit, UnitCancelled)
		return
	}
	*u = Unit{State: UnitSkipped, Try: u.Try - 1, Why: why, Ended: p.Now}
}

// beginWait begins a wait, which may be over at once.
func (p *settling) beginWait(unit int, wait *graph.Wait) {
	u := &p.w.Units[unit]
	switch {
	case wait.Signal != "":
		if v, there := p.w.takeKept(wait.Signal); there {
			p.done(unit, v)
			return
		}
		if wait.Timeout > 0 {
			u.Until = p.Now.Add(wait.Timeout)
		}
	case wait.Delay > 0:
		u.Until = p.Now.Add(wait.Delay)
	default:
		u.Until = wait.Until
	}
	p.passWait(unit, wait)
}

// passWaits ends the waits whose time is over.
func (p *settling) passWaits() {
	for unit := range p.w.Units {
		if u := &p.w.Units[unit]; u.State == UnitMade && u.Until != 0 && u.Until <= p.Now {
			p.passWait(unit, p.w.of().find(unit).Wait)
		}
	}
}

func (p *settling) passWait(unit int, wait *graph.Wait) {
	u := &p.w.Units[unit]
	switch {
	case u.Until == 0 || u.Until > p.Now:
	case wait.Signal == "":
		p.done(unit, Value{})
	case wait.Otherwise != nil:
		p.done(unit, p.value(wait.Otherwise))
	default:
		u.Why = WhyTimedOut
		p.failed(unit)
	}
}

// timeOf is a moment, or the one that is known when there is none.
func timeOf(at, now store.Millis) store.Millis {
	if at == 0 {
		return now
	}
	return at
}

// orderAll tells all children that are open what was asked of their parent.
func (p *transition) orderAll(what Asked) {
	for unit := range p.w.Units {
		if p.w.Units[unit].State == UnitMade && p.w.of().find(unit).Child != nil {
			p.order(unit, what)
		}
	}
}

// order tells the child of a unit what is asked of it.
func (p *transition) order(unit int, what Asked) {
	p.out.Orders = append(p.out.Orders, Order{tasks{p.w}.child(unit), what, p.w.number()})
}
