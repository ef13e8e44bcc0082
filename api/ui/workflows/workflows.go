package workflows

import (
	"context"
	"net/url"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// workflowStates are those that workflows are listed by.
var workflowStates = []ddqv1.WorkflowState{
	ddqv1.WorkflowState_WORKFLOW_STATE_RUNNING, ddqv1.WorkflowState_WORKFLOW_STATE_PAUSED, ddqv1.WorkflowState_WORKFLOW_STATE_FAILING,
	ddqv1.WorkflowState_WORKFLOW_STATE_CANCELLING, ddqv1.WorkflowState_WORKFLOW_STATE_UNDOING, ddqv1.WorkflowState_WORKFLOW_STATE_DONE,
	ddqv1.WorkflowState_WORKFLOW_STATE_FAILED, ddqv1.WorkflowState_WORKFLOW_STATE_CANCELLED,
}

// workflowsPage is a page of workflows, of one topic or of all.
type workflowsPage struct {
	Topic, State string // as they were asked for
	Now          time.Time
	States       []ddqv1.WorkflowState
	Workflows    []*ddqv1.WorkflowStatus
	Next         string
}

func (s *section) workflowList(ctx context.Context, query url.Values) (frame.View, error) {
	r := &ddqv1.ListWorkflowsRequest{Topic: query.Get("topic"), PageSize: frame.PageSize, PageToken: query.Get("page")}
	if name := query.Get("state"); name != "" {
		i := slices.IndexFunc(workflowStates, func(s ddqv1.WorkflowState) bool { return frame.StateText(s) == name })
		if i < 0 {
			return frame.View{}, status.Error(codes.InvalidArgument, "there is no state "+frame.Cut(name))
		}
		r.State = workflowStates[i]
	}
	_, now, err := frame.Server(ctx, s.admin)
	if err != nil {
		return frame.View{}, err
	}
	list, err := s.workflows.ListWorkflows(ctx, r)
	if err != nil {
		return frame.View{}, err
	}
	return frame.View{Title: "Workflows", Page: "workflows", Live: true, Body: workflowsPage{
		Topic: r.Topic, State: query.Get("state"), Now: now, States: workflowStates, Workflows: list.GetWorkflows(), Next: list.GetNextPageToken(),
	}}, nil
}

// workflowPage is a workflow: how it stands, its graph, and why each step waits.
type workflowPage struct {
	*ddqv1.WorkflowStatus
	Now    time.Time
	Over   bool
	Paused bool
	Graph  *graph // nil when there are too many steps for a picture
	Steps  []stepRow
	May    frame.May
}

// stepRow is a step, or a copy of one.
type stepRow struct {
	*ddqv1.StepStatus
	Why string // it stands where it does
}

// Skippable reports whether the step can be skipped.
func (s stepRow) Skippable() bool {
	return s.GetState() == ddqv1.StepState_STEP_STATE_WAITING || s.GetState() == ddqv1.StepState_STEP_STATE_FAILED
}

// Link leads to its task or child; empty when there is none. The task of a step that is over is gone
// where its topic keeps none.
func (s stepRow) Link() string {
	switch {
	case s.GetId() == "":
		return ""
	case s.GetKind() == ddqv1.StepKind_STEP_KIND_CHILD:
		return frame.Link("workflow", "topic", s.GetTopic(), "id", s.GetId())
	case s.GetState() == ddqv1.StepState_STEP_STATE_MADE || s.GetState() == ddqv1.StepState_STEP_STATE_FAILED:
		return frame.Link("task", "topic", s.GetTopic(), "id", s.GetId())
	}
	return ""
}

func (s *section) workflow(ctx context.Context, query url.Values) (frame.View, error) {
	id, err := frame.Required(query, "id")
	if err != nil {
		return frame.View{}, err
	}
	_, now, err := frame.Server(ctx, s.admin)
	if err != nil {
		return frame.View{}, err
	}
	r, err := s.workflows.GetWorkflow(ctx, &ddqv1.GetWorkflowRequest{Topic: query.Get("topic"), Id: id, View: ddqv1.WorkflowView_WORKFLOW_VIEW_STEPS})
	if err != nil {
		return frame.View{}, err
	}
	how := r.GetStatus()
	p := workflowPage{
		WorkflowStatus: how, Now: now, Over: how.GetEndedAt() != nil, Paused: how.GetState() == ddqv1.WorkflowState_WORKFLOW_STATE_PAUSED,
		Graph: newGraph(r.GetSteps()), May: frame.Who(ctx).On(how.GetTopic()),
	}
	ended := endedSteps(r.GetSteps())
	for _, step := range r.GetSteps() {
		p.Steps = append(p.Steps, stepRow{step, why(step, ended, p.Paused, now)})
	}
	return frame.View{Title: "Workflow " + frame.Cut(id), Page: "workflows", Live: true, Body: p}, nil
}

// onWorkflow is an action whose form is about a workflow.
func onWorkflow(form url.Values, did string, do func(topic, id string) error) (string, string, error) {
	id, err := frame.Required(form, "id")
	if err != nil {
		return "", "", err
	}
	topic := form.Get("topic")
	return frame.Link("workflow", "topic", topic, "id", id), did, do(topic, id)
}

func (s *section) cancelWorkflow(ctx context.Context, form url.Values) (string, string, error) {
	return onWorkflow(form, "cancelled", func(topic, id string) error {
		_, err := s.workflows.CancelWorkflow(ctx, &ddqv1.CancelWorkflowRequest{Topic: topic, Id: id, Note: form.Get("note")})
		return err
	})
}

func (s *section) retryWorkflow(ctx context.Context, form url.Values) (string, string, error) {
	return onWorkflow(form, "retried", func(topic, id string) error {
		r := &ddqv1.RetryWorkflowRequest{Topic: topic, Id: id}
		if step := form.Get("step"); step != "" {
			r.Steps = []string{step}
		}
		_, err := s.workflows.RetryWorkflow(ctx, r)
		return err
	})
}

func (s *section) pauseWorkflow(ctx context.Context, form url.Values) (string, string, error) {
	return onWorkflow(form, "paused", func(topic, id string) error {
		_, err := s.workflows.PauseWorkflow(ctx, &ddqv1.PauseWorkflowRequest{Topic: topic, Id: id, By: frame.Who(ctx).Name, Note: form.Get("note")})
		return err
	})
}

func (s *section) resumeWorkflow(ctx context.Context, form url.Values) (string, string, error) {
	return onWorkflow(form, "resumed", func(topic, id string) error {
		_, err := s.workflows.ResumeWorkflow(ctx, &ddqv1.ResumeWorkflowRequest{Topic: topic, Id: id, Note: form.Get("note")})
		return err
	})
}

func (s *section) skipStep(ctx context.Context, form url.Values) (string, string, error) {
	return onWorkflow(form, "skipped", func(topic, id string) error {
		n, err := frame.Number(form, "copy")
		if err != nil {
			return err
		}
		_, err = s.workflows.SkipStep(ctx, &ddqv1.SkipStepRequest{Topic: topic, Id: id, Step: form.Get("step"), Copy: int32(n)}) //nolint:gosec // the server refuses a copy that is none
		return err
	})
}
