package workflow

import (
	"maps"
	"slices"

	"github.com/ddq-io/ddq/actors/workflow/refusal"
)

// retrying is an event of a user that makes units anew, or done by hand.
type retrying struct {
	*transition

	pruned []string // units whose growth is to go
}

// retry makes units anew, see Retry.
func (p *retrying) retry(e Retry) *refusal.Error {
	if err := p.steady(); err != nil {
		return err
	}
	if e.From != "" {
		return p.retryFrom(e.From)
	}
	anew, err := p.chosen(e.Steps)
	if err != nil {
		return err
	}
	for unit := range p.w.Units {
		if anew[unit] {
			p.reset(unit)
		}
	}
	p.reopen()
	return nil
}

// steady refuses changes of a workflow that is being cancelled or undone, or whose units are
// yet to end that were asked to.
func (p *retrying) steady() *refusal.Error {
	w := p.w
	if w.Phase == Cancelling || w.Phase == Undoing {
		return &refusal.Error{Reason: refusal.StepRunning, Field: "id", State: w.State().String(), Message: "workflow " + w.ID + " is " + w.State().String() + ": wait for its end"}
	}
	for unit := range w.Units {
		if u := &w.Units[unit]; u.State == UnitMade && u.Asked && u.Why != WhyRest {
			return running(w, w.of().unitNamed(unit))
		}
	}
	return nil
}

func running(w *Workflow, name string) *refusal.Error {
	return &refusal.Error{Reason: refusal.StepRunning, Field: "steps", State: w.State().String(), Message: "step " + name + " runs: cancel it first"}
}

func noStep(name string) *refusal.Error {
	return refusal.New(refusal.NoStep, "steps", "there is no step %q", name)
}

// retried reports whether a unit is made anew when its step is retried.
func (u *Unit) retried() bool {
	return u.State == UnitFailed || u.State == UnitCancelled && u.Why != WhyRest
}

// chosen are the units that are made anew: those that failed of some steps, or of all.
func (p *retrying) chosen(names []string) (units map[int]bool, err *refusal.Error) {
	units = make(map[int]bool)
	if len(names) == 0 {
		for unit := range p.w.Units {
			if p.w.Units[unit].retried() {
				units[unit] = true
			}
		}
	}
	for _, name := range names {
		i, there := p.w.of().byID[name]
		if !there {
			return nil, noStep(name)
		}
		n, before := &p.w.of().steps[i], len(units)
		for unit := n.first; unit < n.first+n.units; unit++ {
			if p.w.Units[unit].retried() {
				units[unit] = true
			}
		}
		if len(units) == before {
			return nil, nothing(p.w, "step "+name+" has not failed")
		}
	}
	if len(units) == 0 {
		return nil, nothing(p.w, "no step of workflow "+p.w.ID+" has failed")
	}
	return units, nil
}

func nothing(w *Workflow, message string) *refusal.Error {
	return &refusal.Error{Reason: refusal.NothingToRetry, Field: "steps", State: w.State().String(), Message: message}
}

// retryFrom makes a step anew with everything behind it. What these steps grew goes.
func (p *retrying) retryFrom(name string) *refusal.Error {
	i, there := p.w.of().byID[name]
	if !there {
		e := noStep(name)
		e.Field = "from"
		return e
	}
	behind := slices.Sorted(maps.Keys(p.behind(i)))
	for _, at := range behind {
		n := &p.w.of().steps[at]
		for unit := n.first; unit < n.first+n.units; unit++ {
			if p.w.Units[unit].State == UnitMade {
				return running(p.w, p.w.of().unitNamed(unit))
			}
		}
	}
	for _, at := range behind {
		n := &p.w.of().steps[at]
		for unit := n.first; unit < n.first+n.units; unit++ {
			if p.w.Units[unit].State != UnitWaiting {
				p.begin(unit)
			}
		}
	}
	p.reopen()
	return nil
}

// behind are a step and those that depend on it, and what grew from any of them.
func (p *retrying) behind(i int) map[int]bool {
	g := p.w.of()
	found := map[int]bool{i: true}
	for queue := []int{i}; len(queue) > 0; queue = queue[1:] {
		next := slices.Clone(g.steps[queue[0]].before)
		next = append(next, g.steps[queue[0]].grew...)
		for at := g.steps[queue[0]].parent; at >= 0; at = g.steps[at].parent {
			for _, b := range g.steps[at].before {
				if slices.ContainsFunc(g.steps[b].after, func(e edge) bool { return e.step == at && e.grown }) {
					next = append(next, b)
				}
			}
		}
		for _, n := range next {
			if !found[n] {
				found[n] = true
				queue = append(queue, n)
			}
		}
	}
	return found
}

// begin has a unit wait again, whose next try begins at the beginning: with nothing that it grew.
func (p *retrying) begin(unit int) {
	p.pruned = append(p.pruned, p.w.of().unitNamed(unit))
	p.forgetJournal(&p.w.Units[unit])
	p.reset(unit)
}

// reset has a unit wait again. Its next try is another making. What it grew goes if it was done, see
// prune; one that was suspended, and was not done then, goes on from there.
func (p *retrying) reset(unit int) {
	u := &p.w.Units[unit]
	if u.State == UnitDone || u.State == UnitUndone || u.State == UnitUndoFailed {
		p.pruned = append(p.pruned, p.w.of().unitNamed(unit))
	}
	p.forget(u.Value)
	*u = Unit{Try: u.Try, Journal: u.Journal}
}

// prune removes what units grew that are made anew.
func (p *retrying) prune() {
	if len(p.pruned) > 0 {
		p.dropGrown(func(g *Grown) bool { return slices.Contains(p.pruned, g.Parent) })
		p.pruned = nil
	}
}

// reopen brings a workflow back to running. What was undone is made anew, and what was skipped
// is decided anew.
func (p *retrying) reopen() {
	w := p.w
	for unit := range w.Units {
		switch u := &w.Units[unit]; {
		case u.State == UnitUndone || u.State == UnitUndoFailed:
			p.reset(unit)
		case u.State == UnitSkipped && u.Why != WhyLeftOut && u.Why != WhyRest:
			p.reset(unit)
		}
	}
	p.prune()
	if !w.Phase.Open() || w.Cause == CauseTimedOut {
		w.Started = p.Now // the timeout counts from here
	}
	w.Phase, w.Cause, w.Failed, w.Cancelled, w.Ended, w.AskTo = Running, CauseNone, "", false, 0, 0
}

// skip makes units done by hand, see Skip.
func (p *retrying) skip(e Skip) *refusal.Error {
	if err := p.steady(); err != nil {
		return err
	}
	i, there := p.w.of().byID[e.Step]
	if !there {
		return refusal.New(refusal.NoStep, "step", "there is no step %q", e.Step)
	}
	units, err := p.skippable(&p.w.of().steps[i], e.Copy)
	if err != nil {
		return err
	}
	v := e.Result
	for _, unit := range units {
		p.reset(unit)
		p.w.Units[unit].Why = WhySkipped
		p.done(unit, p.value(v))
	}
	p.prune()
	if _, bad := (conditions{p.w}).unsound(); !bad && p.w.Phase != Running {
		p.reopen()
	}
	return nil
}

// skippable are the units of a step that are to be done by hand.
func (p *retrying) skippable(n *node, number int) (units []int, err *refusal.Error) {
	for unit := n.first; unit < n.first+n.units; unit++ {
		u := &p.w.Units[unit]
		switch {
		case number != 0 && n.copyOf(unit) != number, u.State == UnitDone && number == 0 && n.units > 1:
			continue
		case u.State == UnitMade && n.Wait == nil:
			return nil, running(p.w, p.w.of().unitNamed(unit))
		case u.State == UnitDone:
			return nil, &refusal.Error{Reason: refusal.StepDone, Field: "step", State: p.w.State().String(), Message: "step " + n.name + " is done"}
		}
		units = append(units, unit)
	}
	if len(units) == 0 {
		return nil, &refusal.Error{Reason: refusal.StepDone, Field: "step", State: p.w.State().String(), Message: "step " + n.name + " has no copy that is not done"}
	}
	return units, nil
}
