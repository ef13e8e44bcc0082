package wire

import (
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/store"
)

var stepEndToWire = [...]ddqv1.StepState{
	store.StepDone: ddqv1.StepState_STEP_STATE_DONE, store.StepFailed: ddqv1.StepState_STEP_STATE_FAILED,
	store.StepCancelled: ddqv1.StepState_STEP_STATE_CANCELLED, store.StepSkipped: ddqv1.StepState_STEP_STATE_SKIPPED,
}

// putStep writes which step of a workflow a task is, if it is one.
func putStep(t *ddqv1.Task, from *store.StepOf) {
	if from == nil {
		return
	}
	t.Step = &ddqv1.TaskStep{
		Workflow: Text(from.Workflow), WorkflowTopic: from.Topic, WorkflowName: Text(from.Kind), Name: Text(from.Name),
		Copy: int32(from.Copy), Try: int32(from.Try), Starts: int32(from.Starts), Undo: from.Undo, Input: from.Input,
	}
	t.InputsCut = from.Cut
	for i := range from.Inputs {
		in := &from.Inputs[i]
		t.Inputs = append(t.Inputs, &ddqv1.StepInput{
			Step: Text(in.Step), Copy: int32(in.Copy), State: Enum(stepEndToWire[:], in.End), Size: int64(in.Size), Result: in.Result, Error: Text(in.Error),
		})
	}
}

// readStep reads what putStep wrote; nil of a task that is no step. What is malformed is left out.
func readStep(from *ddqv1.Task) *store.StepOf {
	s := from.GetStep()
	if s == nil {
		return nil
	}
	t := &store.StepOf{
		Workflow: s.GetWorkflow(), Topic: s.GetWorkflowTopic(), Kind: s.GetWorkflowName(), Name: s.GetName(),
		Copy: int(s.GetCopy()), Try: int(s.GetTry()), Starts: int(s.GetStarts()), Undo: s.GetUndo(), Input: s.GetInput(), Cut: from.GetInputsCut(),
	}
	for _, in := range from.GetInputs() {
		end, _ := ReadEnum[store.StepEnd](stepEndToWire[:], in.GetState(), "inputs.state")
		t.Inputs = append(t.Inputs, store.StepInput{
			Step: in.GetStep(), Copy: int(in.GetCopy()), End: end, Size: int(in.GetSize()), Result: in.GetResult(), Error: in.GetError(),
		})
	}
	return t
}
