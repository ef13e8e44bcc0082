package client

import (
	"github.com/ddq-io/ddq/api/client/internal/wire"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// Wire returns the workflow as it is sent.
func (w *Workflow) Wire() (*ddqv1.Workflow, error) {
	out, err := w.wire()
	return out, plain(err)
}

// WorkflowOf reads a workflow as it is sent; nil for nil.
func WorkflowOf(w *ddqv1.Workflow) *Workflow {
	if w == nil {
		return nil
	}
	out := &Workflow{
		Topic: w.GetTopic(), ID: w.GetId(), Name: w.GetName(), Input: w.GetInput(), Failure: Failure(w.GetFailure()), Undo: w.GetUndo(),
		Timeout: wire.Duration(w.GetTimeoutMs()), Retention: wire.Duration(w.GetRetentionMs()), Labels: wire.AttributesFrom(w.GetLabels()), ResultOf: w.GetResultOf(),
	}
	for _, s := range w.GetSteps() {
		out.Steps = append(out.Steps, stepOf(s))
	}
	return out
}

func stepOf(w *ddqv1.Step) Step {
	s := Step{
		Name: w.GetName(), Need: int(w.GetNeed()), CancelRest: w.GetCancelRest(), AtATime: int(w.GetAtATime()), IgnoreFailure: w.GetIgnoreFailure(),
		Input: w.GetInput(), Task: stepTaskOf(w.GetTask()), Child: WorkflowOf(w.GetChild()),
	}
	for _, a := range w.GetAfter() {
		s.After = append(s.After, Condition{Step: a.GetStep(), On: On(a.GetOn()), Grown: a.GetGrown()})
	}
	if w.GetWait() != nil {
		s.Wait = waitOf(w.GetWait())
	}
	if w != nil && w.Copies != nil {
		s.Copies = new(int(w.GetCopies()))
	}
	if w.GetUndo() != nil {
		s.Undo = new(stepTaskOf(w.GetUndo()))
	}
	return s
}

func waitOf(w *ddqv1.Wait) Wait {
	return Wait{
		Delay: wire.Duration(w.GetDelayMs()), Until: wire.Time(w.GetUntil()), Signal: w.GetSignal(), Timeout: wire.Duration(w.GetTimeoutMs()), Otherwise: w.GetOtherwise(),
	}
}

// stepTaskOf reads what the task of a step is made of.
func stepTaskOf(w *ddqv1.TaskTemplate) Task {
	t := Task{
		encoded: true,
		Topic:   w.GetTopic(), Payload: w.GetPayload(), Attributes: wire.AttributesFrom(w.GetAttributes()), Backoff: backoffFrom(w.GetBackoff()),
		VisibilityTimeout: wire.Duration(w.GetVisibilityTimeoutMs()), HandlerTimeout: wire.Duration(w.GetHandlerTimeoutMs()),
		Priority: int(w.GetPriority()), FairnessKey: w.GetFairnessKey(), FairnessWeight: int(w.GetFairnessWeight()),
		RateKey: w.GetRateKey(), ConcurrencyKey: w.GetConcurrencyKey(), ExpireAfter: wire.Span(w.GetExpireAfter()), Delay: wire.Span(w.GetDelay()),
	}
	if w != nil && w.MaxRetries != nil {
		t.MaxRetries = new(int(w.GetMaxRetries()))
	}
	return t
}
