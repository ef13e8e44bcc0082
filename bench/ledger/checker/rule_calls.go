package checker

import (
	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/calls"
)

// tasksOfSteps: each making of a step has one task, or one behind the other where it waits for
// others in the middle: when these have ended, and with the journal of those before it.
func tasksOfSteps(w *workflow) {
	if w.mayBeUndone() {
		return
	}
	for of, tasks := range w.makings {
		tries := map[int][]calls.Part{}
		for _, s := range tasks {
			tries[s.making.Try] = append(tries[s.making.Try], partOf(s))
		}
		for try, parts := range tries {
			f := calls.Function{Step: of.step, Try: try, Endable: func(step string) int64 { return w.flow.Called(step, of.starts) }}
			if v, why, args := f.Check(parts); why != "" {
				w.offend(v, why, args...)
				return
			}
		}
	}
}

// partOf is the task, as one of a function.
func partOf(s *story) calls.Part {
	p := calls.Part{Task: s.id, Began: s.begin(), Ran: s.ran}
	for _, o := range s.checkpoints {
		if o.did() && o.settled != nil && !o.settled.loose {
			p.Kept = append(p.Kept, calls.Kept{Name: o.Name, Asked: o.Mono, Answered: o.to})
		}
	}
	for _, d := range s.deliveries {
		if d.Making != nil {
			p.Told = append(p.Told, d.Making.Inputs)
		}
	}
	for _, o := range s.settles {
		if o.Op == ledger.Ack && o.Suspends && o.may() {
			p.Calls = o.Grow
		}
	}
	return p
}

// ends reports whether an ack may have ended the step of its task.
func (o *op) ends() bool { return o.may() && !o.Suspends }

// grown are the steps that acks of the task add, or may have added.
func grown(s *story) []ledger.Step {
	for _, o := range s.settles {
		if o.Op == ledger.Ack && o.may() && len(o.Grow) > 0 {
			return o.Grow
		}
	}
	return nil
}
