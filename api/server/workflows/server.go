package workflows

import (
	"context"

	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/service/workflows"
	"github.com/ddq-io/ddq/api/wire"
)

// Edge is what the service needs of the server that it is part of.
type Edge struct {
	// MayEnqueue says why the caller may not make tasks in a topic; nil when it may.
	MayEnqueue func(ctx context.Context, topic string) *problem.Error
	// Poll is the context of a call that waits, which ends when the node goes away, and PollError
	// why such a call failed.
	Poll      func(ctx context.Context) (poll context.Context, done func())
	PollError func(ctx context.Context, err error) error
	// ItemError is the failure of one item of a call.
	ItemError func(err error) *ddqv1.Error
}

// server answers WorkflowService.
type server struct {
	ddqv1.UnsafeWorkflowServiceServer
	cases *workflows.Workflows
	edge  Edge
}

// New returns what answers WorkflowService by the use cases of a node.
func New(cases *workflows.Workflows, edge Edge) ddqv1.WorkflowServiceServer {
	return &server{cases: cases, edge: edge}
}

// SubmitWorkflow is for whoever may enqueue in all topics that the workflow makes tasks in.
func (s *server) SubmitWorkflow(ctx context.Context, r *ddqv1.SubmitWorkflowRequest) (*ddqv1.SubmitWorkflowResponse, error) {
	return s.submit(ctx, s.cases, r.GetWorkflow())
}

func (s *server) submit(ctx context.Context, cases *workflows.Workflows, w *ddqv1.Workflow) (*ddqv1.SubmitWorkflowResponse, error) {
	for _, topic := range append(TopicsOf(w.GetSteps()), w.GetTopic()) {
		if e := s.edge.MayEnqueue(ctx, topic); e != nil {
			return nil, e
		}
	}
	n, e := submitOf(w)
	if e != nil {
		return nil, e
	}
	done, err := cases.Submit(ctx, n)
	if err != nil {
		return nil, err
	}
	return &ddqv1.SubmitWorkflowResponse{
		Topic: n.Topic, Id: n.ID, State: wire.Enum(stateToWire[:], done.State), Deduplicated: done.Deduplicated, ReplacedState: wire.Enum(stateToWire[:], done.Replaced),
	}, nil
}

func (s *server) SubmitWorkflows(ctx context.Context, r *ddqv1.SubmitWorkflowsRequest) (*ddqv1.SubmitWorkflowsResponse, error) {
	if n := len(r.GetWorkflows()); n == 0 || n > workflows.MaxSubmits {
		return nil, wire.Invalid("BATCH_SIZE", "workflows", "has %d; 1 to %d are allowed", n, workflows.MaxSubmits)
	}
	ids := make([]string, len(r.GetWorkflows()))
	for i, w := range r.GetWorkflows() {
		ids[i] = w.GetId()
	}
	out := &ddqv1.SubmitWorkflowsResponse{Results: make([]*ddqv1.SubmitWorkflowResult, len(ids))}
	workflows.Spread(s.cases, ids, func(cases *workflows.Workflows, i int) {
		done, err := s.submit(ctx, cases, r.GetWorkflows()[i])
		out.Results[i] = &ddqv1.SubmitWorkflowResult{Result: &ddqv1.SubmitWorkflowResult_Submitted{Submitted: done}}
		if err != nil {
			out.Results[i].Result = &ddqv1.SubmitWorkflowResult_Error{Error: s.edge.ItemError(err)}
		}
	})
	return out, ctx.Err()
}

// maxShown is how many steps GetWorkflow shows.
const maxShown = 1000

func (s *server) GetWorkflow(ctx context.Context, r *ddqv1.GetWorkflowRequest) (*ddqv1.GetWorkflowResponse, error) {
	if v := r.GetView(); v < 0 || v > ddqv1.WorkflowView_WORKFLOW_VIEW_FULL {
		return nil, wire.Invalid("BAD_ENUM", "view", "has no value %d", v)
	}
	status, steps, err := s.cases.Get(ctx, r.GetTopic(), r.GetId(), r.GetView() >= ddqv1.WorkflowView_WORKFLOW_VIEW_STEPS)
	if err != nil {
		return nil, err
	}
	out := &ddqv1.GetWorkflowResponse{Status: statusWire(&status), Steps: stepsWire(steps[:min(len(steps), maxShown)])}
	if r.GetView() == ddqv1.WorkflowView_WORKFLOW_VIEW_FULL {
		d, err := s.cases.Definition(ctx, status.Topic, r.GetId())
		if err != nil {
			return nil, err
		}
		out.Workflow = definitionWire(status.Topic, status.ID, d)
	}
	return out, nil
}

// ListSteps shows no results: GetWorkflow and GetStepResults do.
func (s *server) ListSteps(ctx context.Context, r *ddqv1.ListStepsRequest) (*ddqv1.ListStepsResponse, error) {
	var state *workflow.UnitState
	if r.GetState() != ddqv1.StepState_STEP_STATE_UNSPECIFIED {
		read, e := wire.ReadEnum[workflow.UnitState](unitToWire[:], r.GetState(), "state")
		if e != nil {
			return nil, e
		}
		state = &read
	}
	steps, next, err := s.cases.Steps(ctx, r.GetTopic(), r.GetId(), state, int(r.GetPageSize()), r.GetPageToken())
	if err != nil {
		return nil, err
	}
	out := &ddqv1.ListStepsResponse{Steps: stepsWire(steps), NextPageToken: next}
	leaveOutResults(nil, out.Steps)
	return out, nil
}

func (s *server) GetStepResults(ctx context.Context, r *ddqv1.GetStepResultsRequest) (*ddqv1.GetStepResultsResponse, error) {
	results, next, err := s.cases.Results(ctx, r.GetTopic(), r.GetId(), r.GetStep(), int(r.GetPageSize()), r.GetPageToken())
	if err != nil {
		return nil, err
	}
	return &ddqv1.GetStepResultsResponse{Results: resultsWire(results), NextPageToken: next}, nil
}

func (s *server) ListWorkflows(ctx context.Context, r *ddqv1.ListWorkflowsRequest) (*ddqv1.ListWorkflowsResponse, error) {
	state, e := orFirst[workflow.State](stateToWire[:], r.GetState(), "state")
	if e != nil {
		return nil, e
	}
	_, labels := wire.ReadAttributes(r.GetLabels(), nil)
	f := workflows.Filter{Topic: r.GetTopic(), State: state, Name: r.GetName(), Labels: labels}
	found, next, err := s.cases.List(ctx, f, int(r.GetPageSize()), r.GetPageToken())
	if err != nil {
		return nil, err
	}
	out := &ddqv1.ListWorkflowsResponse{NextPageToken: next}
	for i := range found {
		out.Workflows = append(out.Workflows, statusWire(&found[i]))
	}
	return out, nil
}

// CancelWorkflow is a long poll where it waits. When that is cut short, the request stands.
func (s *server) CancelWorkflow(ctx context.Context, r *ddqv1.CancelWorkflowRequest) (*ddqv1.CancelWorkflowResponse, error) {
	wait, e := wire.Span(r.GetWaitMs(), "wait_ms")
	if e != nil {
		return nil, e
	}
	poll, done := s.edge.Poll(ctx)
	defer done()
	status, err := s.cases.Cancel(ctx, poll, r.GetTopic(), r.GetId(), r.GetNote(), wait)
	if err != nil {
		return nil, err
	}
	return &ddqv1.CancelWorkflowResponse{Status: statusWire(&status)}, nil
}

func (s *server) RetryWorkflow(ctx context.Context, r *ddqv1.RetryWorkflowRequest) (*ddqv1.RetryWorkflowResponse, error) {
	status, err := s.cases.Retry(ctx, r.GetTopic(), r.GetId(), workflow.Retry{Steps: r.GetSteps(), From: r.GetFrom()})
	if err != nil {
		return nil, err
	}
	return &ddqv1.RetryWorkflowResponse{Status: statusWire(&status)}, nil
}

func (s *server) SkipStep(ctx context.Context, r *ddqv1.SkipStepRequest) (*ddqv1.SkipStepResponse, error) {
	skip := workflow.Skip{Step: r.GetStep(), Copy: int(r.GetCopy()), Result: r.GetResult()}
	status, err := s.cases.Skip(ctx, r.GetTopic(), r.GetId(), skip)
	if err != nil {
		return nil, err
	}
	return &ddqv1.SkipStepResponse{Status: statusWire(&status)}, nil
}

func (s *server) PauseWorkflow(ctx context.Context, r *ddqv1.PauseWorkflowRequest) (*ddqv1.PauseWorkflowResponse, error) {
	status, err := s.cases.Pause(ctx, r.GetTopic(), r.GetId(), r.GetBy(), r.GetNote())
	if err != nil {
		return nil, err
	}
	return &ddqv1.PauseWorkflowResponse{Status: statusWire(&status)}, nil
}

func (s *server) ResumeWorkflow(ctx context.Context, r *ddqv1.ResumeWorkflowRequest) (*ddqv1.ResumeWorkflowResponse, error) {
	status, err := s.cases.Resume(ctx, r.GetTopic(), r.GetId(), r.GetNote())
	if err != nil {
		return nil, err
	}
	return &ddqv1.ResumeWorkflowResponse{Status: statusWire(&status)}, nil
}

func (s *server) SignalWorkflow(ctx context.Context, r *ddqv1.SignalWorkflowRequest) (*ddqv1.SignalWorkflowResponse, error) {
	sig := workflow.Signal{Name: r.GetSignal(), Payload: r.GetPayload(), ID: r.GetSignalId()}
	topic, err := s.cases.Signal(ctx, r.GetTopic(), r.GetId(), sig)
	if err != nil {
		return nil, err
	}
	return &ddqv1.SignalWorkflowResponse{Topic: topic}, nil
}

func (s *server) DeleteWorkflow(ctx context.Context, r *ddqv1.DeleteWorkflowRequest) (*ddqv1.DeleteWorkflowResponse, error) {
	topic, err := s.cases.Delete(ctx, r.GetTopic(), r.GetId())
	if err != nil {
		return nil, err
	}
	return &ddqv1.DeleteWorkflowResponse{Topic: topic}, nil
}

// WaitWorkflow is a long poll, which ends when the node goes away.
func (s *server) WaitWorkflow(ctx context.Context, r *ddqv1.WaitWorkflowRequest) (*ddqv1.WaitWorkflowResponse, error) {
	wait, e := wire.Span(r.GetWaitMs(), "wait_ms")
	if e != nil {
		return nil, e
	}
	poll, done := s.edge.Poll(ctx)
	defer done()
	status, err := s.cases.Wait(poll, r.GetTopic(), r.GetId(), wait)
	if err != nil {
		return nil, s.edge.PollError(ctx, err)
	}
	return &ddqv1.WaitWorkflowResponse{Status: statusWire(&status), Ended: !status.State.Open()}, nil
}

// WatchWorkflow sends frames until the workflow has ended, or the caller or the node goes away.
func (s *server) WatchWorkflow(r *ddqv1.WatchWorkflowRequest, stream grpc.ServerStreamingServer[ddqv1.WatchWorkflowResponse]) error {
	if r.GetVersion() < 0 {
		return wire.Invalid("OUT_OF_RANGE_FIELD", "version", "must not be negative")
	}
	ctx, done := s.edge.Poll(stream.Context())
	defer done()
	w := s.cases.Watch(r.GetTopic(), r.GetId(), r.GetVersion())
	for {
		f, more, err := w.Next(ctx)
		if err != nil {
			return s.edge.PollError(stream.Context(), err)
		}
		if !more {
			return nil
		}
		frame := &ddqv1.WatchWorkflowResponse{Status: statusWire(&f.Status), Steps: stepsWire(f.Steps)}
		leaveOutResults(frame.Status, frame.Steps)
		if err := stream.Send(frame); err != nil {
			return err
		}
	}
}
