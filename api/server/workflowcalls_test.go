package server

import (
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// flowCalls are the calls for one workflow.
var flowCalls = map[string]func(r *rig, topic, id string) error{
	"cancel": func(r *rig, topic, id string) error {
		_, err := r.workflows.CancelWorkflow(r.Context(), &ddqv1.CancelWorkflowRequest{Topic: topic, Id: id})
		return err
	},
	"retry": func(r *rig, topic, id string) error {
		_, err := r.workflows.RetryWorkflow(r.Context(), &ddqv1.RetryWorkflowRequest{Topic: topic, Id: id})
		return err
	},
	"skip": func(r *rig, topic, id string) error {
		_, err := r.workflows.SkipStep(r.Context(), &ddqv1.SkipStepRequest{Topic: topic, Id: id, Step: "ship"})
		return err
	},
	"pause": func(r *rig, topic, id string) error {
		_, err := r.workflows.PauseWorkflow(r.Context(), &ddqv1.PauseWorkflowRequest{Topic: topic, Id: id})
		return err
	},
	"resume": func(r *rig, topic, id string) error {
		_, err := r.workflows.ResumeWorkflow(r.Context(), &ddqv1.ResumeWorkflowRequest{Topic: topic, Id: id})
		return err
	},
	"signal": func(r *rig, topic, id string) error {
		_, err := r.workflows.SignalWorkflow(r.Context(), &ddqv1.SignalWorkflowRequest{Topic: topic, Id: id, Signal: "approve"})
		return err
	},
	"delete": func(r *rig, topic, id string) error {
		_, err := r.workflows.DeleteWorkflow(r.Context(), &ddqv1.DeleteWorkflowRequest{Topic: topic, Id: id})
		return err
	},
	"get": func(r *rig, topic, id string) error {
		_, err := r.workflows.GetWorkflow(r.Context(), &ddqv1.GetWorkflowRequest{Topic: topic, Id: id})
		return err
	},
	"list steps": func(r *rig, topic, id string) error {
		_, err := r.workflows.ListSteps(r.Context(), &ddqv1.ListStepsRequest{Topic: topic, Id: id})
		return err
	},
	"results": func(r *rig, topic, id string) error {
		_, err := r.workflows.GetStepResults(r.Context(), &ddqv1.GetStepResultsRequest{Topic: topic, Id: id, Step: "ship"})
		return err
	},
	"wait": func(r *rig, topic, id string) error {
		_, err := r.workflows.WaitWorkflow(r.Context(), &ddqv1.WaitWorkflowRequest{Topic: topic, Id: id, WaitMs: 1000})
		return err
	},
}

// callOf makes a call for order-17.
func callOf(name string) func(r *rig) error {
	return func(r *rig) error { return flowCalls[name](r, "orders", "order-17") }
}

// A workflow that is not there is not found, whatever is called for it.
func TestEveryCallForAnUnknownWorkflowIsRefused(t *testing.T) {
	var rows []refusal
	for name := range flowCalls {
		rows = append(rows, refusal{name, func(r *rig) error {
			must(r, submitted(nil)(r))
			return flowCalls[name](r, "orders", "order-18")
		}, codes.NotFound, "NO_WORKFLOW", "id", "", 0})
	}
	testRefusals(t, rows)
}

// A child is changed by its root only; it is read as any other.
func TestEveryChangeOfAChildIsRefused(t *testing.T) {
	var rows []refusal
	for _, name := range []string{"cancel", "retry", "skip", "pause", "resume", "delete"} {
		rows = append(rows, refusal{name, func(r *rig) error {
			must(r, stepped(0, func(s *ddqv1.Step) {
				s.Does = &ddqv1.Step_Child{Child: &ddqv1.Workflow{Steps: []*ddqv1.Step{{Name: "ship"}}}}
			})(r))
			return flowCalls[name](r, "orders", "order-17/charge")
		}, codes.FailedPrecondition, "CHILD_WORKFLOW", "id", "", 0})
	}
	testRefusals(t, rows)
}

// over makes a call for a workflow that was cancelled.
func over(name string) func(r *rig) error {
	return ordered(func(r *rig) error { cancelOrder(r); return callOf(name)(r) })
}

var flowCallRefusals = []refusal{
	{"cancel of a finished one", over("cancel"), codes.FailedPrecondition, "WORKFLOW_FINISHED", "id", "", 0},
	{"resume of a finished one", over("resume"), codes.FailedPrecondition, "WORKFLOW_FINISHED", "id", "", 0},
	{"skip of an unknown step", ordered(func(r *rig) error {
		_, err := r.workflows.SkipStep(r.Context(), &ddqv1.SkipStepRequest{Id: "order-17", Step: "x"})
		return err
	}), codes.NotFound, "NO_STEP", "step", "", 0},
	{"retry from an unknown step", ordered(func(r *rig) error {
		_, err := r.workflows.RetryWorkflow(r.Context(), &ddqv1.RetryWorkflowRequest{Id: "order-17", From: "x"})
		return err
	}), codes.NotFound, "NO_STEP", "from", "", 0},
	{"a step that waits for itself", stepped(0, func(s *ddqv1.Step) { s.After = []*ddqv1.After{{Step: "charge"}} }),
		codes.InvalidArgument, "BAD_GRAPH", "steps[0].after[0]", "", 0},
	{"a step that waits for one twice", stepped(2, func(s *ddqv1.Step) { s.After[1].Step = "charge" }),
		codes.InvalidArgument, "BAD_GRAPH", "steps[2].after[1]", "", 0},
	{"negative need", stepped(2, func(s *ddqv1.Step) { s.Need = -1 }), codes.InvalidArgument, "BAD_GRAPH", "steps[2].need", "", 0},
	{"timeout of a wait out of range", waited(&ddqv1.Wait{What: &ddqv1.Wait_Signal{Signal: "s"}, TimeoutMs: -1}),
		codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "steps[1].wait.timeout_ms", "", 0},
	{"timeout of a wait for no signal", waited(&ddqv1.Wait{What: &ddqv1.Wait_DelayMs{DelayMs: 1}, TimeoutMs: 1}),
		codes.InvalidArgument, "BAD_WAIT", "steps[1].wait", "", 0},
}

func TestEveryRefusalOfCallsForWorkflowsHasItsCodeAndDetails(t *testing.T) {
	testRefusals(t, flowCallRefusals)
}
