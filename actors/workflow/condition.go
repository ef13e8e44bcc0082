package workflow

import (
	"slices"

	"github.com/ddq-io/ddq/actors/workflow/graph"
)

// outcome is how a step ended, all of its copies together.
type outcome uint8

const (
	isOpen outcome = iota
	isDone
	isFailed
	isCancelled
	isSkipped
)

// verdict is whether conditions are met.
type verdict uint8

const (
	mayBe verdict = iota
	isMet
	isNever
)

// conditions decides what the states of units mean for the steps that wait for them.
type conditions struct{ w *Workflow }

// weigh says whether the conditions of a step are met, and which of them first cannot be.
func (c conditions) weigh(n *node) (v verdict, unmet string) {
	need := n.Need
	if need == 0 {
		need = len(n.after)
	}
	met, open := 0, 0
	for _, e := range n.after {
		switch c.meets(e) {
		case isMet:
			met++
		case mayBe:
			open++
		default:
			if unmet == "" {
				unmet = c.w.of().steps[e.step].name
			}
		}
	}
	switch {
	case met >= need:
		return isMet, ""
	case met+open < need:
		return isNever, unmet
	}
	return mayBe, ""
}

func (c conditions) meets(e edge) verdict {
	o := c.outcomeOf(e.step)
	ignored := c.w.of().steps[e.step].IgnoreFailure
	if e.grown && (o == isDone || o == isFailed) {
		switch grew := c.outcomeOfGrown(e.step); grew {
		case isOpen:
			return mayBe
		case isFailed:
			o, ignored = isFailed, false
		case isCancelled: // which is what becomes of it when the step fails
			if o != isFailed || ignored {
				o, ignored = isCancelled, false
			}
		}
	}
	switch {
	case o == isOpen:
		return mayBe
	case e.on == graph.OnEnded, e.on == graph.OnFailed && o == isFailed, e.on == graph.OnDone && (o == isDone || o == isFailed && ignored):
		return isMet
	}
	return isNever
}

// outcomeOf is how a step ended. It is failed when one copy is.
func (c conditions) outcomeOf(i int) outcome {
	o := isDone
	for _, u := range c.w.of().steps[i].unitsIn(c.w) {
		switch u.State {
		case UnitWaiting, UnitMade:
			return isOpen
		case UnitFailed:
			o = isFailed
		case UnitCancelled:
			if o != isFailed {
				o = isCancelled
			}
		case UnitSkipped:
			if o == isDone {
				o = isSkipped
			}
		}
	}
	return o
}

// outcomeOfGrown is how all that grew from a step ended. What was skipped of it is no matter.
func (c conditions) outcomeOfGrown(i int) outcome {
	all := isDone
	for _, child := range c.w.of().steps[i].grew {
		o := c.outcomeOf(child)
		if o == isFailed && c.w.of().steps[child].IgnoreFailure {
			o = isDone
		}
		below := c.outcomeOfGrown(child)
		switch {
		case o == isOpen || below == isOpen:
			return isOpen
		case o == isFailed || below == isFailed:
			all = isFailed
		case (o == isCancelled || below == isCancelled) && all == isDone:
			all = isCancelled
		}
	}
	return all
}

// forbids says why nothing of a step is made any more, whatever its conditions are.
func (c conditions) forbids(n *node) Why {
	w := c.w
	switch {
	case w.Phase == Cancelling || w.Phase == Undoing && w.Cancelled:
		return WhyCancelled
	case w.Phase == Undoing:
		return WhyWorkflowFailed
	case w.Phase == Failing && w.Cause != CauseStep:
		return WhyWorkflowFailed
	case w.Phase == Failing && w.Def.Failure != graph.CarryOn && !n.handles():
		return WhyWorkflowFailed
	case !n.IgnoreFailure && slices.ContainsFunc(n.unitsIn(c.w), func(u Unit) bool { return u.State == UnitFailed }):
		return WhyWorkflowFailed
	}
	return WhyNone
}

// unsound finds a unit that failed, or was cancelled, before a retry of others brought the
// workflow back to running.
func (c conditions) unsound() (name string, bad bool) {
	for unit := range c.w.Units {
		u := &c.w.Units[unit]
		failed := u.State == UnitFailed && !c.w.of().find(unit).IgnoreFailure
		if failed || u.State == UnitCancelled && u.Why != WhyRest {
			return c.w.of().unitNamed(unit), true
		}
	}
	return "", false
}
