package workflows

import (
	"fmt"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

func (p *workflowPage) body() g.Node {
	return g.Group{
		h.P(frame.OfTopic(p.GetTopic()), g.Text(" · "), frame.Anchor("its workflows", "workflows", "topic", p.GetTopic())),
		p.figures(),
		p.cause(),
		g.If(p.GetNote() != "", h.P(h.Class("quiet"), g.Text(frame.Cut(p.GetNote())))),
		p.acts(),
		p.Graph.picture(),
		h.H2(g.Text("Steps")),
		p.table(),
	}
}

func (p *workflowPage) figures() g.Node {
	state := frame.StateText(p.GetState())
	if by := p.GetPausedBy(); by != "" {
		state += " by " + frame.Cut(by)
	}
	return frame.Figures(
		frame.Figure("state", g.Text(state)),
		frame.Figure("began", frame.Time(p.GetStartedAt(), p.Now)),
		g.If(p.GetEndedAt() != nil, frame.Figure("ended", frame.Time(p.GetEndedAt(), p.Now))),
		g.If(p.GetTimeoutTime() != nil, frame.Figure("times out", frame.Time(p.GetTimeoutTime(), p.Now))),
	)
}

// cause says why the workflow ends without success.
func (p *workflowPage) cause() g.Node {
	if p.GetCause() == ddqv1.WorkflowCause_WORKFLOW_CAUSE_UNSPECIFIED {
		return nil
	}
	text := frame.StateText(p.GetCause())
	for _, more := range []string{p.GetFailedStep(), p.GetError()} {
		if more != "" {
			text += ": " + frame.Cut(more)
		}
	}
	return frame.Warning(text)
}

// form is one about the workflow; onWorkflow reads it.
func (p *workflowPage) form(path string, inside ...g.Node) g.Node {
	return frame.Post(path, frame.Hidden("topic", p.GetTopic(), "id", p.GetId()), g.Group(inside))
}

func (p *workflowPage) acts() g.Node {
	pause := p.form("workflow/pause", frame.Button("Pause", h.Class("plain"), frame.Key("p")))
	if p.Paused {
		pause = p.form("workflow/resume", frame.Button("Resume", frame.Key("p")))
	}
	return h.Div(h.Class("acts"),
		g.If(p.May.Operate && !p.Over, pause),
		g.If(p.May.Operate && p.GetSteps().GetFailed() != 0, p.form("workflow/retry", frame.Button("Retry what failed", frame.Key("r")))),
		g.If(p.May.Enqueue && !p.Over, frame.Fold("Cancel", p.form("workflow/cancel", frame.Danger("Cancel the workflow")))),
	)
}

func (p *workflowPage) table() g.Node {
	heads := g.Group{frame.Heads("step", "state", "why", "after", "task", "ended"), g.If(p.May.Operate, frame.Heads("actions"))}
	return frame.Table("Steps", "", heads, g.Map(p.Steps, p.row))
}

func (p *workflowPage) row(s stepRow) g.Node {
	name, kind := frame.Cut(s.GetName())+" ", frame.StateText(s.GetKind())
	if s.GetCopy() != 0 {
		name += fmt.Sprint(s.GetCopy(), " ")
	}
	if s.GetKind() == ddqv1.StepKind_STEP_KIND_TASK {
		kind = ""
	}
	after := make([]string, len(s.GetAfter()))
	for i, a := range s.GetAfter() {
		after[i] = frame.Cut(a.GetStep())
	}
	return h.Tr(
		frame.RowHead(g.Text(name), frame.Quiet(kind)),
		frame.Cells(frame.StateText(s.GetState()), s.Why, strings.Join(after, ", ")),
		h.Td(s.anchor()),
		h.Td(frame.Time(s.GetEndedAt(), p.Now)),
		g.If(p.May.Operate, h.Td(h.Class("acts"), g.If(s.skippable(), p.skip(s)))),
	)
}

func (p *workflowPage) skip(s stepRow) g.Node {
	return frame.Fold("Skip", p.form("workflow/skip", frame.Hidden("step", s.GetName(), "copy", fmt.Sprint(s.GetCopy())),
		frame.Button("Skip it", h.Aria("label", "Skip it: "+frame.Cut(s.GetName())))))
}

// skippable reports whether the step can be skipped.
func (s stepRow) skippable() bool {
	return s.GetState() == ddqv1.StepState_STEP_STATE_WAITING || s.GetState() == ddqv1.StepState_STEP_STATE_FAILED
}

// anchor leads to its task or child; nothing when there is none. The task of a step that is over is
// gone where its topic keeps none.
func (s stepRow) anchor() g.Node {
	switch {
	case s.GetId() == "":
		return nil
	case s.GetKind() == ddqv1.StepKind_STEP_KIND_CHILD:
		return frame.Anchor("open", "workflow", "topic", s.GetTopic(), "id", s.GetId())
	case s.GetState() == ddqv1.StepState_STEP_STATE_MADE || s.GetState() == ddqv1.StepState_STEP_STATE_FAILED:
		return frame.Anchor("open", "task", "topic", s.GetTopic(), "id", s.GetId())
	}
	return nil
}
