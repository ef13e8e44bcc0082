package operations

import (
	"context"
	"net/url"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// operationPage is an operation, and how far it is.
type operationPage struct {
	*ddqv1.Operation
	Topic string
	Now   time.Time
	May   frame.May
}

func (s *section) operation(ctx context.Context, query url.Values) (frame.View, error) {
	topic, err := frame.Required(query, "topic")
	if err != nil {
		return frame.View{}, err
	}
	id, err := frame.Required(query, "id")
	if err != nil {
		return frame.View{}, err
	}
	_, now, err := frame.Server(ctx, s.admin)
	if err != nil {
		return frame.View{}, err
	}
	r, err := s.operations.GetOperation(ctx, &ddqv1.GetOperationRequest{Topic: topic, Id: id})
	if err != nil {
		return frame.View{}, err
	}
	p := operationPage{r.GetOperation(), topic, now, frame.Who(ctx).On(topic)}
	return frame.View{Title: "Operation: " + doesText(p.Operation), Page: "overview", Live: true, Body: p.body()}, nil
}

// stop asks an operation to stop. One that has ended stays as it is.
func (s *section) stop(ctx context.Context, form url.Values) (string, string, error) {
	topic, err := frame.Required(form, "topic")
	if err != nil {
		return "", "", err
	}
	id, err := frame.Required(form, "id")
	if err != nil {
		return "", "", err
	}
	r, err := s.operations.StopOperation(ctx, &ddqv1.StopOperationRequest{Topic: topic, Id: id})
	did := "stopping"
	if ended(r.GetOperation()) {
		did = "over"
	}
	return frame.Link("operation", "topic", topic, "id", id), did, err
}

func (p *operationPage) body() g.Node {
	return g.Group{
		h.P(frame.OfTopic(p.Topic)),
		p.figures(),
		g.If(p.GetError() != nil, frame.Warning("It failed: "+frame.Cut(p.GetError().GetMessage()))),
		g.If(p.May.Operate, h.Div(h.Class("acts"), stopForm(p.Topic, p.Operation))),
		h.H2(g.Text("What it does")), p.asked(),
		h.H2(g.Text("More")), p.facts(),
	}
}

func (p *operationPage) figures() g.Node {
	progress := p.GetProgress()
	return frame.Figures(
		frame.Figure("state", g.Text(stateText(p.Operation))),
		frame.Figure("changed", g.Text(frame.CountText(progress.GetChanged()))),
		frame.Figure("matched", g.Text(frame.CountText(progress.GetMatched()))),
		frame.Figure("skipped", g.Text(frame.CountText(progress.GetSkipped()))),
		g.If(progress.GetExamined() > 0, frame.Figure("examined", g.Text(frame.CountText(progress.GetExamined())))),
	)
}

// asked is what was asked for.
func (p *operationPage) asked() g.Node {
	facts := g.Group{frame.Fact("does", g.Text(doesText(p.Operation)))}
	for _, f := range filterFacts(p.GetRequest()) {
		facts = append(facts, frame.FactIf(f[0], f[1]))
	}
	if rate := rateText(p.Operation); rate != "" {
		return frame.Facts(facts, frame.Fact("a second, at most", g.Text(rate)))
	}
	return frame.Facts(facts, frame.Fact("a second", g.Text("as many as it goes")))
}

func (p *operationPage) facts() g.Node {
	at := func(ms int64, none string) g.Node {
		if ms == 0 {
			return g.Text(none)
		}
		return frame.Exact(instant(ms))
	}
	return frame.Facts(
		frame.Fact("id", h.Code(g.Text(frame.Cut(p.GetId())))),
		frame.FactIf("started by", p.GetStartedBy()),
		frame.FactIf("node", p.GetNode()),
		frame.Fact("asked for", at(p.GetCreatedUnixMs(), "not known")),
		frame.Fact("began", at(p.GetBeganUnixMs(), "not yet")),
		frame.Fact("ended", at(p.GetEndedUnixMs(), "not yet")),
	)
}

// stopForm stops an operation, if it goes on.
func stopForm(topic string, o *ddqv1.Operation) g.Node {
	return g.If(!ended(o) && !o.GetStopping(), frame.Post("operation/stop", frame.Hidden("topic", topic, "id", o.GetId()),
		frame.Danger("Stop", h.Aria("label", "Stop operation "+frame.Cut(o.GetId())))))
}
