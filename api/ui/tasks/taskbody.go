package tasks

import (
	"fmt"
	"net/url"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/ddq-io/ddq/api/ui/frame"
)

func (p *taskPage) body() g.Node {
	return g.Group{
		h.P(frame.OfTopic(p.GetTopic())),
		p.figures(),
		p.acts(),
		h.H2(g.Text("Timeline")),
		h.Ol(h.Class("timeline"), g.Map(p.Timeline, p.moment)),
		p.payload(),
		p.result(),
		p.journal(),
		h.H2(g.Text("More")),
		p.facts(),
	}
}

func (p *taskPage) figures() g.Node {
	state := frame.StateText(p.GetState())
	if what := frame.StateText(p.GetWaitingFor()); what != "" {
		state += ", waits for " + what
	}
	return frame.Figures(
		frame.Figure("state", g.Text(state)),
		frame.Figure("due", frame.Time(p.GetExecuteTime(), p.Now)),
		frame.Figure("attempts before", g.Text(fmt.Sprintf("%d of %d retries", p.GetRetryCount(), p.GetMaxRetries()))),
		frame.Figure("priority", g.Text(fmt.Sprint(p.GetPriority()))),
	)
}

// form is one about the task; readTaskForm reads it.
func (p *taskPage) form(path string, inside ...g.Node) g.Node {
	return frame.Post(path, frame.Hidden("topic", p.GetTopic(), "id", p.GetId(), "version", fmt.Sprint(p.GetVersion())), g.Group(inside))
}

// acts are what can be done to the task, by who looks.
func (p *taskPage) acts() g.Node {
	var all g.Group
	switch {
	case !p.May.Enqueue || !p.open():
	case p.running():
		all = g.Group{frame.Fold("Cancel", p.form("task/cancel", frame.Danger("Ask its worker to stop")))}
	default:
		all = g.Group{
			p.form("task/promote", frame.Button("Run now")),
			frame.Fold("Reschedule", p.form("task/reschedule", h.Class("filter"),
				frame.Input("Due in", h.Name("delay"), h.Required(), h.Value("15m"), g.Attr("size", "8"), h.MaxLength("40"), h.AutoComplete("off")), frame.Button("Reschedule"))),
			frame.Fold("Edit", frame.Key("e"), newEdit(p).form()),
			frame.Fold("Delete", p.form("task/delete", frame.Danger("Delete the task"))),
		}
	}
	return h.Div(h.Class("acts"), all, g.If(p.May.Operate && p.dead(), p.form("task/requeue", frame.Button("Retry", frame.Key("r")))))
}

func (p *taskPage) moment(m moment) g.Node {
	var when g.Node
	if m.At != nil {
		when = g.Group{frame.Exact(m.At), g.Text(", " + frame.AwayText(m.At, p.Now))}
	}
	return h.Li(g.If(m.Ahead, h.Class("ahead")),
		h.Strong(g.Text(m.What)),
		g.If(m.Late != 0, g.Group{g.Text(" "), h.Span(g.Text(frame.SpanText(m.Late.Milliseconds()) + " late"))}),
		g.If(m.Who != "", g.Group{g.Text(" "), h.Span(g.Text(frame.Cut(m.Who)))}),
		h.Span(h.Class("quiet when"), when),
		g.If(m.Error != "", h.Span(h.Class("bad"), g.Text(frame.Cut(m.Error)))),
		g.If(m.Trace != "", h.Span(h.Class("quiet"), g.Text("trace "), p.trace(m.Trace))),
	)
}

// trace names a trace, as a link where it is known where traces are.
func (p *taskPage) trace(id string) g.Node {
	if p.Traces == "" {
		return g.Text(id)
	}
	return h.A(h.Href(strings.ReplaceAll(p.Traces, TraceID, url.PathEscape(id))), h.Rel("noreferrer"), g.Text(id))
}

func (p *taskPage) payload() g.Node {
	about := fmt.Sprintf("%d bytes, %s", p.Payload.Size, p.Payload.Form)
	switch {
	case p.GetMasked():
		about = "you may not see it"
	case p.Payload.Cut:
		about += ", the beginning"
	}
	return g.Group{
		h.H2(g.Text("Payload "), frame.Quiet(about)), g.If(p.Payload.Text != "", frame.Verbatim("Payload", p.Payload.Text)),
		g.If(p.Payload.Size > 0 && !p.GetMasked(), h.P(frame.Anchor("Save it", "payload", "topic", p.GetTopic(), "id", p.GetId()))),
	}
}

func (p *taskPage) result() g.Node {
	if p.Result.Text == "" {
		return nil
	}
	return g.Group{
		h.H2(g.Text("Result "), frame.Quiet(fmt.Sprintf("%d bytes, %s", p.Result.Size, p.Result.Form))),
		frame.Verbatim("Result", p.Result.Text),
	}
}

func (p *taskPage) facts() g.Node {
	var attributes g.Group
	for _, a := range p.GetAttributes() {
		attributes = append(attributes, frame.Fact(frame.Cut(a.GetKey()), g.Text(frame.Cut(a.GetValue()))))
	}
	return frame.Facts(attributes,
		frame.FactIf("ordering key", p.GetOrderingKey()),
		frame.FactIf("fairness key", p.GetFairnessKey()),
		frame.FactIf("rate key", p.GetRateKey()),
		frame.FactIf("concurrency key", p.GetConcurrencyKey()),
		frame.FactIf("idempotency key", p.GetIdempotencyKey()),
		frame.FactIf("schedule", p.GetSchedule()),
		frame.FactIf("recipient", p.GetRecipient()),
		g.If(p.GetExpireTime() != nil, frame.Fact("expires", frame.Exact(p.GetExpireTime()))),
		frame.Fact("version", g.Text(fmt.Sprint(p.GetVersion()))),
	)
}
