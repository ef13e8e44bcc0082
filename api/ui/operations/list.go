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

// listPage is a page of a topic's operations.
type listPage struct {
	Topic string
	Now   time.Time
	All   []*ddqv1.Operation
	Next  string
	May   frame.May
}

func (s *section) list(ctx context.Context, query url.Values) (frame.View, error) {
	topic, err := frame.Required(query, "topic")
	if err != nil {
		return frame.View{}, err
	}
	_, now, err := frame.Server(ctx, s.admin)
	if err != nil {
		return frame.View{}, err
	}
	list, err := s.operations.ListOperations(ctx, &ddqv1.ListOperationsRequest{Topic: topic, PageSize: frame.PageSize, PageToken: query.Get("page")})
	if err != nil {
		return frame.View{}, err
	}
	p := listPage{topic, now, list.GetOperations(), list.GetNextPageToken(), frame.Who(ctx).On(topic)}
	return frame.View{Title: "Operations of " + frame.Cut(topic), Page: "overview", Live: true, Body: p.body()}, nil
}

func (p *listPage) body() g.Node {
	return g.Group{h.P(frame.OfTopic(p.Topic)), p.table()}
}

func (p *listPage) table() g.Node {
	if len(p.All) == 0 {
		return g.Group{
			frame.None(p.Next, "operations", "topic", p.Topic),
			g.If(p.May.Operate, h.P(h.Class("quiet"), g.Text("What is done to all tasks or dead letters that a filter matches, at a rate, is an operation. The pages of both start one."))),
		}
	}
	heads := g.Group{frame.Heads("id", "does", "state"), frame.NumberHeads("changed", "matched", "skipped", "a second"), frame.Heads("started by", "node", "began", "ended"), g.If(p.May.Operate, frame.Heads("actions"))}
	return g.Group{
		frame.Table("Operations", "Operations, the newest first", heads, g.Map(p.All, p.row)),
		frame.More(p.Next, "operations", "topic", p.Topic),
	}
}

func (p *listPage) row(o *ddqv1.Operation) g.Node {
	progress := o.GetProgress()
	return h.Tr(
		frame.RowHead(frame.Anchor(frame.Cut(o.GetId()), "operation", "topic", p.Topic, "id", o.GetId())),
		frame.Cells(doesText(o), stateText(o)),
		frame.Counts(progress.GetChanged(), progress.GetMatched(), progress.GetSkipped()), frame.Amounts(rateText(o)),
		frame.Cells(frame.Cut(o.GetStartedBy()), frame.Cut(o.GetNode())),
		h.Td(frame.Time(instant(o.GetBeganUnixMs()), p.Now)), h.Td(frame.Time(instant(o.GetEndedUnixMs()), p.Now)),
		g.If(p.May.Operate, h.Td(h.Class("acts"), stopForm(p.Topic, o))),
	)
}
