package workflows

import (
	"errors"
	"fmt"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/workflow/refusal"
	"github.com/ddq-io/ddq/store"
)

// kinds are the reasons of a refusal.Error that say something else than that a request can never
// succeed.
var kinds = map[string]problem.Kind{
	refusal.NoWorkflow:       problem.NotFound,
	refusal.NoStep:           problem.NotFound,
	refusal.IDConflict:       problem.Exists,
	refusal.ChildWorkflow:    problem.Precondition,
	refusal.WorkflowFinished: problem.Precondition,
	refusal.WorkflowOpen:     problem.Precondition,
	refusal.NothingToRetry:   problem.Precondition,
	refusal.StepRunning:      problem.Precondition,
	refusal.StepDone:         problem.Precondition,
	refusal.TooManySignals:   problem.Exhausted,
	refusal.WorkflowBusy:     problem.Unavailable,
}

// errorOf turns an error of the workflows in a store into one of ours; nil for nil.
func errorOf(err error) *problem.Error {
	var refused *refusal.Error
	if errors.Is(err, store.ErrUnknown) || !errors.As(err, &refused) {
		return problem.FromStore(err)
	}
	kind, known := kinds[refused.Reason]
	if !known {
		kind = problem.Invalid
	}
	e := &problem.Error{Kind: kind, Reason: refused.Reason, Field: refused.Field, Message: refused.Message}
	if refused.State != "" {
		e.Message += " (the workflow is " + refused.State + ")"
	}
	if kind == problem.Unavailable {
		e.RetryAfter = problem.RetrySoon
	}
	return e
}

// plain is errorOf as an error value: a nil *Error is a nil error.
func plain(err error) error {
	if e := errorOf(err); e != nil {
		return e
	}
	return nil
}

func noWorkflow(id string) *problem.Error {
	return &problem.Error{Kind: problem.NotFound, Reason: refusal.NoWorkflow, Field: "id", Message: fmt.Sprintf("no workflow %q", id)}
}
