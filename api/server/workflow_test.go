package server

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// order is a workflow as a new user would submit it: a charge and an approval, then shipping.
func order(edit func(*ddqv1.Workflow)) *ddqv1.Workflow {
	w := &ddqv1.Workflow{Topic: "orders", Id: "order-17", Name: "order", Steps: []*ddqv1.Step{
		{Name: "charge", Undo: &ddqv1.TaskTemplate{}},
		{Name: "approve", Does: &ddqv1.Step_Wait{Wait: &ddqv1.Wait{What: &ddqv1.Wait_Signal{Signal: "approve"}, TimeoutMs: 3_600_000}}},
		{Name: "ship", After: []*ddqv1.After{{Step: "charge"}, {Step: "approve"}}, Does: &ddqv1.Step_Task{Task: &ddqv1.TaskTemplate{Payload: []byte("box")}}},
	}}
	if edit != nil {
		edit(w)
	}
	return w
}

// submitted submits order with a change.
func submitted(edit func(*ddqv1.Workflow)) func(r *rig) error {
	return func(r *rig) error {
		_, err := r.workflows.SubmitWorkflow(r.Context(), &ddqv1.SubmitWorkflowRequest{Workflow: order(edit)})
		return err
	}
}

// stepped submits order with a change of one of its steps.
func stepped(i int, edit func(*ddqv1.Step)) func(r *rig) error {
	return submitted(func(w *ddqv1.Workflow) { edit(w.Steps[i]) })
}

// waited submits order with another wait.
func waited(w *ddqv1.Wait) func(r *rig) error {
	return stepped(1, func(s *ddqv1.Step) { s.Does = &ddqv1.Step_Wait{Wait: w} })
}

// ordered makes a call behind a submit.
func ordered(then func(r *rig) error) func(r *rig) error {
	return func(r *rig) error {
		must(r, submitted(nil)(r))
		return then(r)
	}
}

func cancelOrder(r *rig) {
	_, err := r.workflows.CancelWorkflow(r.Context(), &ddqv1.CancelWorkflowRequest{Id: "order-17", WaitMs: 10_000})
	must(r, err)
}

func signalled(edit func(*ddqv1.SignalWorkflowRequest)) func(r *rig) error {
	return func(r *rig) error {
		req := &ddqv1.SignalWorkflowRequest{Topic: "orders", Id: "order-17", Signal: "approve"}
		if edit != nil {
			edit(req)
		}
		_, err := r.workflows.SignalWorkflow(r.Context(), req)
		return err
	}
}

var workflowRefusals = []refusal{
	// Graphs.
	{"no workflow", func(r *rig) error {
		_, err := r.workflows.SubmitWorkflow(r.Context(), &ddqv1.SubmitWorkflowRequest{})
		return err
	}, codes.InvalidArgument, "BAD_WORKFLOW", "workflow", "", 0},
	{"bad topic", submitted(func(w *ddqv1.Workflow) { w.Topic = "a b" }), codes.InvalidArgument, "BAD_NAME", "topic", "", 0},
	{"bad id", submitted(func(w *ddqv1.Workflow) { w.Id = "a/b" }), codes.InvalidArgument, "BAD_NAME", "id", "", 0},
	{"no steps", submitted(func(w *ddqv1.Workflow) { w.Steps = nil }), codes.InvalidArgument, "BAD_GRAPH", "steps", "", 0},
	{"bad name of a step", stepped(0, func(s *ddqv1.Step) { s.Name = "a b" }), codes.InvalidArgument, "BAD_GRAPH", "steps[0].name", "", 0},
	{"a name twice", stepped(2, func(s *ddqv1.Step) { s.Name = "charge" }), codes.InvalidArgument, "BAD_GRAPH", "steps[2].name", "", 0},
	{"unknown after", stepped(2, func(s *ddqv1.Step) { s.After[0].Step = "x" }), codes.InvalidArgument, "BAD_GRAPH", "steps[2].after[0]", "", 0},
	{"a cycle", stepped(0, func(s *ddqv1.Step) { s.After = []*ddqv1.After{{Step: "ship"}} }), codes.InvalidArgument, "BAD_GRAPH", "steps[0].after[0]", "", 0},
	{"need over the number", stepped(2, func(s *ddqv1.Step) { s.Need = 3 }), codes.InvalidArgument, "BAD_GRAPH", "steps[2].need", "", 0},
	{"copies of a child", stepped(0, func(s *ddqv1.Step) {
		s.Does, s.Copies = &ddqv1.Step_Child{Child: &ddqv1.Workflow{Steps: []*ddqv1.Step{{Name: "a"}}}}, proto.Int32(2)
	}), codes.InvalidArgument, "BAD_GRAPH", "steps[0].copies", "", 0},
	{"id of a child", stepped(0, func(s *ddqv1.Step) { s.Does = &ddqv1.Step_Child{Child: &ddqv1.Workflow{Id: "x"}} }),
		codes.InvalidArgument, "BAD_WORKFLOW", "steps[0].child.id", "", 0},
	{"unknown on", stepped(2, func(s *ddqv1.Step) { s.After[0].On = 9 }), codes.InvalidArgument, "BAD_ENUM", "steps[2].after[0].on", "", 0},
	{"unknown failure", submitted(func(w *ddqv1.Workflow) { w.Failure = 9 }), codes.InvalidArgument, "BAD_ENUM", "failure", "", 0},
	{"result of no step", submitted(func(w *ddqv1.Workflow) { w.ResultOf = "x" }), codes.InvalidArgument, "BAD_GRAPH", "result_of", "", 0},

	// Sizes.
	{"10,001 steps", stepped(0, func(s *ddqv1.Step) { s.Copies = proto.Int32(9999) }), codes.InvalidArgument, "TOO_MANY_STEPS", "steps", "", 0},
	{"101 after", submitted(func(w *ddqv1.Workflow) {
		for i := range 101 {
			name := fmt.Sprint("n", i)
			w.Steps = append(w.Steps, &ddqv1.Step{Name: name})
			w.Steps[2].After = append(w.Steps[2].After, &ddqv1.After{Step: name})
		}
	}), codes.InvalidArgument, "TOO_MANY_STEPS", "steps[2].after", "", 0},
	{"over 1 MiB", submitted(func(w *ddqv1.Workflow) {
		for i := range w.Steps[:2] {
			w.Steps[i].Does = &ddqv1.Step_Task{Task: &ddqv1.TaskTemplate{Payload: make([]byte, 600<<10)}}
		}
	}), codes.InvalidArgument, "WORKFLOW_TOO_LARGE", "steps", "", 0},
	{"depth 9", submitted(func(w *ddqv1.Workflow) {
		for range 8 {
			w.Steps = []*ddqv1.Step{{Name: "a", Does: &ddqv1.Step_Child{Child: &ddqv1.Workflow{Steps: w.Steps}}}}
		}
	}), codes.InvalidArgument, "WORKFLOW_TOO_LARGE", strings.Repeat("steps[0].child.", 8) + "steps", "", 0},

	// Templates and waits.
	{"template of bad priority", stepped(2, func(s *ddqv1.Step) { s.GetTask().Priority = 10 }), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "steps[2].task.priority", "", 0},
	{"template of bad attributes", stepped(2, func(s *ddqv1.Step) { s.GetTask().Attributes = []*ddqv1.Attribute{{}} }), codes.InvalidArgument, "BAD_ATTRIBUTES", "steps[2].task.attributes", "", 0},
	{"template of bad topic", stepped(2, func(s *ddqv1.Step) { s.GetTask().Topic = "a b" }), codes.InvalidArgument, "BAD_NAME", "steps[2].task.topic", "", 0},
	{"undo of negative retries", stepped(0, func(s *ddqv1.Step) { s.Undo.MaxRetries = proto.Int32(-1) }), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "steps[0].undo.max_retries", "", 0},
	{"template of negative delay", stepped(2, func(s *ddqv1.Step) { s.GetTask().Delay = durationpb.New(-time.Second) }), codes.InvalidArgument, "BAD_DELAY", "steps[2].task.delay", "", 0},
	{"template too large for the topic", func(r *rig) error {
		must(r, created("orders", &ddqv1.TopicPolicy{MaxPayloadBytes: proto.Int64(1)})(r))
		return submitted(nil)(r)
	}, codes.InvalidArgument, "PAYLOAD_TOO_LARGE", "steps[2].task.payload", "", 0},
	{"template of a child", stepped(0, func(s *ddqv1.Step) {
		s.Does = &ddqv1.Step_Child{Child: &ddqv1.Workflow{Steps: []*ddqv1.Step{{Name: "a", Undo: &ddqv1.TaskTemplate{Priority: -1}}}}}
	}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "steps[0].child.steps[0].undo.priority", "", 0},
	{"wait for nothing", waited(&ddqv1.Wait{}), codes.InvalidArgument, "BAD_WAIT", "steps[1].wait", "", 0},
	{"wait with otherwise and no timeout", waited(&ddqv1.Wait{What: &ddqv1.Wait_Signal{Signal: "s"}, Otherwise: []byte("x")}), codes.InvalidArgument, "BAD_WAIT", "steps[1].wait.otherwise", "", 0},
	{"wait for a bad signal", waited(&ddqv1.Wait{What: &ddqv1.Wait_Signal{Signal: "a b"}}), codes.InvalidArgument, "BAD_NAME", "steps[1].wait.signal", "", 0},
	{"wait for ages", waited(&ddqv1.Wait{What: &ddqv1.Wait_DelayMs{DelayMs: 1 << 40}}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "steps[1].wait.delay_ms", "", 0},
	{"timeout out of range", submitted(func(w *ddqv1.Workflow) { w.TimeoutMs = -1 }), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "timeout_ms", "", 0},
	{"retention out of range", submitted(func(w *ddqv1.Workflow) { w.RetentionMs = proto.Int64(0) }), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "retention_ms", "", 0},

	// What is there, and what is not.
	{"another request under the id", ordered(submitted(func(w *ddqv1.Workflow) { w.Name = "other" })), codes.AlreadyExists, "ID_CONFLICT", "id", "", 0},
	{"unknown workflow", func(r *rig) error {
		_, err := r.workflows.GetWorkflow(r.Context(), &ddqv1.GetWorkflowRequest{Id: "order-17"})
		return err
	}, codes.NotFound, "NO_WORKFLOW", "id", "", 0},
	{"unknown topic of a workflow", func(r *rig) error {
		_, err := r.workflows.GetWorkflow(r.Context(), &ddqv1.GetWorkflowRequest{Topic: "orders", Id: "order-17"})
		return err
	}, codes.NotFound, "NO_TOPIC", "topic", "", 0},
	{"unknown view", ordered(func(r *rig) error {
		_, err := r.workflows.GetWorkflow(r.Context(), &ddqv1.GetWorkflowRequest{Id: "order-17", View: 9})
		return err
	}), codes.InvalidArgument, "BAD_ENUM", "view", "", 0},
	{"unknown step", ordered(func(r *rig) error {
		_, err := r.workflows.GetStepResults(r.Context(), &ddqv1.GetStepResultsRequest{Id: "order-17", Step: "x"})
		return err
	}), codes.NotFound, "NO_STEP", "step", "", 0},
	{"retry of an unknown step", ordered(func(r *rig) error {
		_, err := r.workflows.RetryWorkflow(r.Context(), &ddqv1.RetryWorkflowRequest{Id: "order-17", Steps: []string{"x"}})
		return err
	}), codes.NotFound, "NO_STEP", "steps", "", 0},
	{"call for a child", func(r *rig) error {
		must(r, stepped(0, func(s *ddqv1.Step) {
			s.Does = &ddqv1.Step_Child{Child: &ddqv1.Workflow{Steps: []*ddqv1.Step{{Name: "a"}}}}
		})(r))
		_, err := r.workflows.PauseWorkflow(r.Context(), &ddqv1.PauseWorkflowRequest{Topic: "orders", Id: "order-17/charge"})
		return err
	}, codes.FailedPrecondition, "CHILD_WORKFLOW", "id", "", 0},
	{"workflow in two topics", ordered(func(r *rig) error {
		must(r, submitted(func(w *ddqv1.Workflow) { w.Topic = "others" })(r))
		_, err := r.workflows.GetWorkflow(r.Context(), &ddqv1.GetWorkflowRequest{Id: "order-17"})
		return err
	}), codes.FailedPrecondition, "AMBIGUOUS_ID", "topic", "", 0},

	// Calls that come too late or too early.
	{"signal of a finished one", ordered(func(r *rig) error { cancelOrder(r); return signalled(nil)(r) }), codes.FailedPrecondition, "WORKFLOW_FINISHED", "id", "", 0},
	{"pause of a finished one", ordered(func(r *rig) error {
		cancelOrder(r)
		_, err := r.workflows.PauseWorkflow(r.Context(), &ddqv1.PauseWorkflowRequest{Id: "order-17"})
		return err
	}), codes.FailedPrecondition, "WORKFLOW_FINISHED", "id", "", 0},
	{"retry without a failed step", ordered(func(r *rig) error {
		_, err := r.workflows.RetryWorkflow(r.Context(), &ddqv1.RetryWorkflowRequest{Id: "order-17"})
		return err
	}), codes.FailedPrecondition, "NOTHING_TO_RETRY", "steps", "", 0},
	{"retry of steps and from one", ordered(func(r *rig) error {
		_, err := r.workflows.RetryWorkflow(r.Context(), &ddqv1.RetryWorkflowRequest{Id: "order-17", Steps: []string{"charge"}, From: "ship"})
		return err
	}), codes.InvalidArgument, "BAD_WORKFLOW", "from", "", 0},
	{"retry from a step that is made", ordered(func(r *rig) error {
		_, err := r.workflows.RetryWorkflow(r.Context(), &ddqv1.RetryWorkflowRequest{Id: "order-17", From: "charge"})
		return err
	}), codes.FailedPrecondition, "STEP_RUNNING", "from", "", 0},
	{"delete of an open one", ordered(func(r *rig) error {
		_, err := r.workflows.DeleteWorkflow(r.Context(), &ddqv1.DeleteWorkflowRequest{Id: "order-17"})
		return err
	}), codes.FailedPrecondition, "WORKFLOW_OPEN", "id", "", 0},
	{"skip of a step that is made", ordered(func(r *rig) error {
		_, err := r.workflows.SkipStep(r.Context(), &ddqv1.SkipStepRequest{Id: "order-17", Step: "charge"})
		return err
	}), codes.FailedPrecondition, "STEP_RUNNING", "step", "", 0},
	{"skip of no step", ordered(func(r *rig) error {
		_, err := r.workflows.SkipStep(r.Context(), &ddqv1.SkipStepRequest{Id: "order-17"})
		return err
	}), codes.InvalidArgument, "BAD_NAME", "step", "", 0},
	{"skip with a long result", ordered(func(r *rig) error {
		_, err := r.workflows.SkipStep(r.Context(), &ddqv1.SkipStepRequest{Id: "order-17", Step: "ship", Result: make([]byte, 256<<10+1)})
		return err
	}), codes.InvalidArgument, "RESULT_TOO_LARGE", "result", "", 0},

	// Signals.
	{"large signal", ordered(signalled(func(s *ddqv1.SignalWorkflowRequest) { s.Payload = make([]byte, 64<<10+1) })), codes.InvalidArgument, "SIGNAL_TOO_LARGE", "payload", "", 0},
	{"bad signal", ordered(signalled(func(s *ddqv1.SignalWorkflowRequest) { s.Signal = "a b" })), codes.InvalidArgument, "BAD_NAME", "signal", "", 0},
	{"long id of a signal", ordered(signalled(func(s *ddqv1.SignalWorkflowRequest) { s.SignalId = strings.Repeat("i", 129) })), codes.InvalidArgument, "BAD_NAME", "signal_id", "", 0},
	{"101 signals", ordered(func(r *rig) error {
		for range 100 {
			must(r, signalled(func(s *ddqv1.SignalWorkflowRequest) { s.Signal = "other" })(r))
		}
		time.Sleep(time.Second)
		return signalled(func(s *ddqv1.SignalWorkflowRequest) { s.Signal = "other" })(r)
	}), codes.ResourceExhausted, "TOO_MANY_SIGNALS", "signal", "", time.Second},

	// Pages, batches and waits.
	{"negative page of workflows", func(r *rig) error {
		_, err := r.workflows.ListWorkflows(r.Context(), &ddqv1.ListWorkflowsRequest{PageSize: -1})
		return err
	}, codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "page_size", "", 0},
	{"token of another listing", func(r *rig) error {
		_, err := r.workflows.ListWorkflows(r.Context(), &ddqv1.ListWorkflowsRequest{PageToken: "dG9waWNzOmE"})
		return err
	}, codes.InvalidArgument, "BAD_CURSOR", "page_token", "", 0},
	{"unknown state of workflows", func(r *rig) error {
		_, err := r.workflows.ListWorkflows(r.Context(), &ddqv1.ListWorkflowsRequest{State: 99})
		return err
	}, codes.InvalidArgument, "BAD_ENUM", "state", "", 0},
	{"no workflows", func(r *rig) error {
		_, err := r.workflows.SubmitWorkflows(r.Context(), &ddqv1.SubmitWorkflowsRequest{})
		return err
	}, codes.InvalidArgument, "BATCH_SIZE", "workflows", "", 0},
	{"wait for a year", ordered(func(r *rig) error {
		_, err := r.workflows.WaitWorkflow(r.Context(), &ddqv1.WaitWorkflowRequest{Id: "order-17", WaitMs: 1 << 35})
		return err
	}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "wait_ms", "", 0},
	{"one workflow too many", func(r *rig) error {
		must(r, created("orders", &ddqv1.TopicPolicy{MaxWorkflows: proto.Int64(1)})(r))
		must(r, submitted(nil)(r))
		time.Sleep(time.Minute)
		return submitted(func(w *ddqv1.Workflow) { w.Id = "order-18" })(r)
	}, codes.ResourceExhausted, "TOO_MANY_WORKFLOWS", "topic", "", 10 * time.Second},
	{"negative number of workflows", created("orders", &ddqv1.TopicPolicy{MaxWorkflows: proto.Int64(-1)}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "policy.max_workflows", "", 0},
	{"workflows of a topic kept too short", created("orders", &ddqv1.TopicPolicy{WorkflowRetentionMs: proto.Int64(999)}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "policy.workflow_retention_ms", "", 0},
	{"workflows of a topic kept too long", created("orders", &ddqv1.TopicPolicy{WorkflowRetentionMs: proto.Int64(31_622_400_001)}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "policy.workflow_retention_ms", "", 0},
	// Tasks of steps.
	{"requeue of a dead step", func(r *rig) error {
		must(r, submitted(nil)(r))
		charge := r.take("orders")
		r.bury("orders", charge)
		_, err := r.admin.RequeueDeadLetters(r.Context(), &ddqv1.RequeueDeadLettersRequest{Topic: "orders", Ids: []string{charge.Task.Id}})
		return err
	}, codes.FailedPrecondition, "STEP_OF_WORKFLOW", "ids", "", 0},
	{"delete of a step's task", func(r *rig) error {
		id := r.chargeLater()
		_, err := r.queue.DeleteTask(r.Context(), &ddqv1.DeleteTaskRequest{Topic: "orders", Id: id})
		return err
	}, codes.FailedPrecondition, "STEP_OF_WORKFLOW", "id", "", 0},
	{"cancel or delete of a step's task", func(r *rig) error {
		id := r.chargeLater()
		_, err := r.queue.CancelTask(r.Context(), &ddqv1.CancelTaskRequest{Topic: "orders", Id: id, OrDelete: true})
		return err
	}, codes.FailedPrecondition, "STEP_OF_WORKFLOW", "id", "", 0},
	{"template too large for another topic", func(r *rig) error {
		must(r, created("audit", &ddqv1.TopicPolicy{MaxPayloadBytes: proto.Int64(1)})(r))
		return stepped(2, func(s *ddqv1.Step) { s.GetTask().Topic = "audit" })(r)
	}, codes.InvalidArgument, "PAYLOAD_TOO_LARGE", "steps[2].task.payload", "", 0},
	{"step of a child too large for its topic", func(r *rig) error {
		must(r, created("audit", &ddqv1.TopicPolicy{MaxPayloadBytes: proto.Int64(1)})(r))
		return stepped(2, func(s *ddqv1.Step) {
			s.Does = &ddqv1.Step_Child{Child: &ddqv1.Workflow{Topic: "audit", Steps: []*ddqv1.Step{{Name: "a", Does: s.Does}}}}
		})(r)
	}, codes.InvalidArgument, "PAYLOAD_TOO_LARGE", "steps[2].child.steps[0].task.payload", "", 0},
	{"child in a topic of a bad name", stepped(0, func(s *ddqv1.Step) {
		s.Does = &ddqv1.Step_Child{Child: &ddqv1.Workflow{Topic: "no topic", Steps: []*ddqv1.Step{{Name: "a"}}}}
	}), codes.InvalidArgument, "BAD_NAME", "steps[0].child.topic", "", 0},
	{"again from another topic", func(r *rig) error {
		must(r, stepped(0, func(s *ddqv1.Step) { s.Does = &ddqv1.Step_Task{Task: &ddqv1.TaskTemplate{Topic: "audit"}} })(r))
		d := r.take("audit")
		ack := &ddqv1.Ack{TaskId: d.Task.Id, HoldToken: d.HoldToken, Grow: &ddqv1.Growth{Again: []byte("x")}}
		_, err := r.queue.Ack(r.Context(), &ddqv1.AckRequest{Topic: "audit", Ack: ack})
		return err
	}, codes.InvalidArgument, "BAD_GRAPH", "grow.again", "", 0},
	{"submit to a paused topic", ordered(func(r *rig) error {
		_, err := r.admin.PauseTopic(r.Context(), &ddqv1.PauseTopicRequest{Name: "orders", Enqueue: true})
		must(r, err)
		return submitted(func(w *ddqv1.Workflow) { w.Id = "order-18" })(r)
	}), codes.ResourceExhausted, "ENQUEUE_PAUSED", "topic", "", 5 * time.Second},
}

func TestEveryRefusalOfWorkflowsHasItsCodeAndDetails(t *testing.T) { testRefusals(t, workflowRefusals) }

// take takes the one task of a topic that is due.
func (r *rig) take(topic string) *ddqv1.Delivery {
	r.Helper()
	got, err := r.queue.Retrieve(r.Context(), &ddqv1.RetrieveRequest{Topic: topic, WaitMs: 10_000})
	must(r, err)
	if len(got.Deliveries) != 1 {
		r.Fatalf("%d tasks are due", len(got.Deliveries))
	}
	return got.Deliveries[0]
}

// finish acks a task of the topic orders.
func (r *rig) finish(d *ddqv1.Delivery, edit func(*ddqv1.Ack)) error {
	ack := &ddqv1.Ack{TaskId: d.Task.Id, HoldToken: d.HoldToken}
	edit(ack)
	_, err := r.queue.Ack(r.Context(), &ddqv1.AckRequest{Topic: "orders", Ack: ack})
	return err
}

// TestOrder submits an order, and does its steps.
func TestOrder(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		must(r, submitted(nil)(r))
		again, err := r.workflows.SubmitWorkflow(r.Context(), &ddqv1.SubmitWorkflowRequest{Workflow: order(nil)})
		must(r, err)
		if !again.Deduplicated || again.State != ddqv1.WorkflowState_WORKFLOW_STATE_RUNNING {
			r.Errorf("the same again: %v", again)
		}
		charge := r.take("orders")
		if s := charge.Task.Step; s.GetName() != "charge" || s.GetWorkflow() != "order-17" || s.GetWorkflowName() != "order" || s.GetTry() != 1 {
			r.Errorf("charge is %v", charge.Task)
		}
		must(r, r.finish(charge, func(a *ddqv1.Ack) { a.Result = []byte("paid") }))
		must(r, signalled(func(s *ddqv1.SignalWorkflowRequest) { s.Payload = []byte("by ada") })(r))
		ship := r.take("orders")
		got := map[string]string{}
		for _, in := range ship.Task.Inputs {
			got[in.Step] = in.State.String() + " " + string(in.Result)
		}
		if got["charge"] != "STEP_STATE_DONE paid" || got["approve"] != "STEP_STATE_DONE by ada" || string(ship.Task.Payload) != "box" {
			r.Errorf("ship gets %v", got)
		}
		must(r, r.finish(ship, func(a *ddqv1.Ack) { a.Result = []byte("shipped") }))
		ended, err := r.workflows.WaitWorkflow(r.Context(), &ddqv1.WaitWorkflowRequest{Id: "order-17", WaitMs: 10_000})
		must(r, err)
		if !ended.Ended || ended.Status.State != ddqv1.WorkflowState_WORKFLOW_STATE_DONE || string(ended.Status.Result) != "shipped" {
			r.Errorf("it ended as %v", ended)
		}
		full, err := r.workflows.GetWorkflow(r.Context(), &ddqv1.GetWorkflowRequest{Id: "order-17", View: ddqv1.WorkflowView_WORKFLOW_VIEW_FULL})
		must(r, err)
		if len(full.Steps) != 3 || string(full.Status.Result) != "shipped" || len(full.Workflow.GetSteps()) != 3 || full.Status.Steps.Done != 3 {
			r.Errorf("got %v", full)
		}
		listed, err := r.workflows.ListWorkflows(r.Context(), &ddqv1.ListWorkflowsRequest{State: ddqv1.WorkflowState_WORKFLOW_STATE_DONE})
		must(r, err)
		if len(listed.Workflows) != 1 {
			r.Errorf("listed: %v", listed)
		}
		results, err := r.workflows.GetStepResults(r.Context(), &ddqv1.GetStepResultsRequest{Id: "order-17", Step: "charge"})
		must(r, err)
		if len(results.Results) != 1 || string(results.Results[0].Result) != "paid" {
			r.Errorf("results: %v", results)
		}
		_, err = r.workflows.DeleteWorkflow(r.Context(), &ddqv1.DeleteWorkflowRequest{Id: "order-17"})
		must(r, err)
	})
}

// TestWatchOfAnOrder follows one until its end.
func TestWatchOfAnOrder(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		must(r, submitted(nil)(r))
		stream, err := r.workflows.WatchWorkflow(r.Context(), &ddqv1.WatchWorkflowRequest{Id: "order-17"})
		must(r, err)
		first, err := stream.Recv()
		must(r, err)
		if len(first.Steps) != 3 {
			r.Errorf("first: %v", first)
		}
		cancelOrder(r)
		var last *ddqv1.WatchWorkflowResponse
		for {
			frame, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				break
			}
			must(r, err)
			last = frame
		}
		if last.GetStatus().GetState() != ddqv1.WorkflowState_WORKFLOW_STATE_CANCELLED || len(last.GetSteps()) == 0 {
			r.Errorf("last: %v", last)
		}
	})
}

// TestSubmitsFailAlone submits workflows of which one is bad.
func TestSubmitsFailAlone(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		reply, err := r.workflows.SubmitWorkflows(r.Context(), &ddqv1.SubmitWorkflowsRequest{Workflows: []*ddqv1.Workflow{
			order(nil), order(func(w *ddqv1.Workflow) { w.Id = "a b" }), order(func(w *ddqv1.Workflow) { w.Id = "" }),
		}})
		must(r, err)
		for i, want := range []string{"", "BAD_NAME", ""} {
			if got := reply.Results[i].GetError().GetReason(); got != want || (want == "") != (reply.Results[i].GetSubmitted().GetId() != "") {
				t.Errorf("%d: %v", i, reply.Results[i])
			}
		}
	})
}
