package workflows

import (
	"context"
	"net/url"
	"time"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

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
	return frame.View{Title: "Workflow " + frame.Cut(id), Page: "workflows", Live: true, Body: p.body()}, nil
}
