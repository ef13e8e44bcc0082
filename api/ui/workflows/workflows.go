package workflows

import (
	"context"
	"fmt"
	"net/url"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// workflowStates are those that workflows are listed by.
var workflowStates = []ddqv1.WorkflowState{
	ddqv1.WorkflowState_WORKFLOW_STATE_RUNNING, ddqv1.WorkflowState_WORKFLOW_STATE_PAUSED, ddqv1.WorkflowState_WORKFLOW_STATE_FAILING,
	ddqv1.WorkflowState_WORKFLOW_STATE_CANCELLING, ddqv1.WorkflowState_WORKFLOW_STATE_UNDOING, ddqv1.WorkflowState_WORKFLOW_STATE_DONE,
	ddqv1.WorkflowState_WORKFLOW_STATE_FAILED, ddqv1.WorkflowState_WORKFLOW_STATE_CANCELLED,
}

// workflowFields are those of the form, by what the server says is wrong.
var workflowFields = map[string]string{"topic": "topic", "state": "state"}

// workflowsPage is a page of workflows, of one topic or of all.
type workflowsPage struct {
	Topic, State string // as they were asked for
	Now          time.Time
	Wrong        frame.Mistakes
	Workflows    []*ddqv1.WorkflowStatus
	Next         string
}

func (s *section) workflowList(ctx context.Context, query url.Values) (frame.View, error) {
	_, now, err := frame.Server(ctx, s.admin)
	if err != nil {
		return frame.View{}, err
	}
	p := workflowsPage{Topic: query.Get("topic"), State: query.Get("state"), Now: now, Wrong: frame.Mistakes{}}
	r := &ddqv1.ListWorkflowsRequest{Topic: p.Topic, PageSize: frame.PageSize, PageToken: query.Get("page")}
	r.State, _ = frame.State(p.Wrong, "state", p.State, workflowStates)
	if len(p.Wrong) == 0 {
		list, err := s.workflows.ListWorkflows(ctx, r)
		if err != nil && !p.Wrong.Take(err, workflowFields) {
			return frame.View{}, err
		}
		p.Workflows, p.Next = list.GetWorkflows(), list.GetNextPageToken()
	}
	return frame.View{Title: "Workflows", Page: "workflows", Code: p.Wrong.Code(), Live: len(p.Wrong) == 0, Body: p.body()}, nil
}

func (p *workflowsPage) body() g.Node {
	return g.Group{
		g.If(p.Topic != "", h.P(g.Text("Of "), frame.Anchor("topic "+frame.Cut(p.Topic), "topic", "name", p.Topic), g.Text("; "), frame.Anchor("all", "workflows"))),
		frame.Filter("workflows", p.Wrong.Input("Topic", "topic", h.Value(p.Topic), h.MaxLength("256"), frame.AsTyped()),
			frame.Choice(p.Wrong, "State", "state", "any", workflowStates, p.State)),
		p.table(),
	}
}

func (p *workflowsPage) table() g.Node {
	pairs := []string{"topic", p.Topic, "state", p.State}
	if len(p.Wrong) > 0 {
		return nil
	}
	if len(p.Workflows) == 0 {
		return frame.None(p.Next, "workflows", pairs...)
	}
	heads := g.Group{frame.Heads("id", "topic", "name", "state", "began", "ended"), frame.NumberHeads("waiting", "open", "done", "failed")}
	return g.Group{
		frame.Table("Workflows", "", heads, g.Map(p.Workflows, p.row)),
		frame.More(p.Next, "workflows", pairs...),
	}
}

func (p *workflowsPage) row(w *ddqv1.WorkflowStatus) g.Node {
	steps := w.GetSteps()
	return h.Tr(
		frame.RowHead(frame.Anchor(frame.Cut(w.GetId()), "workflow", "topic", w.GetTopic(), "id", w.GetId())),
		h.Td(frame.Anchor(frame.Cut(w.GetTopic()), "topic", "name", w.GetTopic())),
		frame.Cells(frame.Cut(w.GetName()), frame.StateText(w.GetState())),
		h.Td(frame.Time(w.GetStartedAt(), p.Now)), h.Td(frame.Time(w.GetEndedAt(), p.Now)),
		frame.Digits(steps.GetWaiting(), steps.GetMade(), steps.GetDone()),
		frame.Bad(fmt.Sprint(steps.GetFailed()), steps.GetFailed() != 0),
	)
}
