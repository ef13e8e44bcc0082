package tap

import (
	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/bench/ledger"
)

// Making is which step of a workflow a task is of, and what it was told of those before; nil: it is
// none.
func Making(t *ddqv1.Task) *ledger.Making {
	s := t.GetStep()
	if s == nil {
		return nil
	}
	m := &ledger.Making{Workflow: s.GetWorkflow(), Topic: s.GetWorkflowTopic(), Step: s.GetName(), Copy: int(s.GetCopy()), Try: int(s.GetTry()), Starts: int(s.GetStarts()), Undo: s.GetUndo()}
	for _, in := range t.GetInputs() {
		m.Inputs = append(m.Inputs, ledger.Input{Step: in.GetStep(), Copy: int(in.GetCopy()), State: client.StepState(in.GetState()).String(), Sum: Sum(in.GetResult())})
	}
	return m
}

// grown are the steps that an ack adds, as far as ledgers have them.
func grown(g *ddqv1.Growth) (all []ledger.Step) {
	for _, s := range g.GetSteps() {
		wait := s.GetWait()
		step := ledger.Step{Name: s.GetName(), Signal: wait.GetSignal(), DelayMS: wait.GetDelayMs()}
		if step.Signal != "" {
			step.OtherwiseMS = wait.GetTimeoutMs()
		}
		if s.Copies != nil {
			step.Copies = new(int(s.GetCopies()))
		}
		for _, a := range s.GetAfter() {
			step.After = append(step.After, ledger.Condition{Step: a.GetStep(), Grown: a.GetGrown()})
		}
		all = append(all, step)
	}
	return all
}
