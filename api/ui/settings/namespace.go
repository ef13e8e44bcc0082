package settings

import (
	"context"
	"net/url"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// namespacePage is a namespace, and what it has beside what it may have.
type namespacePage struct {
	*ddqv1.Namespace
	Usage *ddqv1.NamespaceUsage
	Now   time.Time
}

func (s *section) namespace(ctx context.Context, query url.Values) (frame.View, error) {
	name, err := frame.Required(query, "name")
	if err != nil {
		return frame.View{}, err
	}
	_, now, err := frame.Server(ctx, s.admin)
	if err != nil {
		return frame.View{}, err
	}
	r, err := s.access.GetNamespace(ctx, &ddqv1.GetNamespaceRequest{Name: name})
	if err != nil {
		return frame.View{}, err
	}
	p := namespacePage{r.GetNamespace(), r.GetUsage(), now}
	return frame.View{Title: "Namespace " + frame.Cut(p.GetName()), Page: "settings", Body: p.body()}, nil
}

func (p *namespacePage) body() g.Node {
	q, u := p.GetQuotas(), p.Usage
	if u == nil {
		u = &ddqv1.NamespaceUsage{}
	}
	return g.Group{
		h.P(frame.Anchor("Settings", "settings")),
		frame.Facts(frame.Fact("made", madeBy(p.Namespace, p.Now))),
		h.H2(g.Text("In use")),
		frame.Facts(
			frame.Fact("tasks that wait", used(&u.Pending, q.GetMaxPending())),
			frame.Fact("tasks in flight", used(&u.InFlight, q.GetMaxInFlight())),
			frame.Fact("topics", used(&u.Topics, q.GetMaxTopics())),
			frame.Fact("schedules", used(u.Schedules, q.GetMaxSchedules())),
			frame.Fact("worker streams", used(u.Streams, q.GetMaxStreams())),
		),
		h.P(h.Class("quiet"), g.Text("Over all nodes, and about: it changes while it is counted. At most 10\u202f000 schedules are counted, and schedules and streams only where they have a bound.")),
		h.H2(g.Text("Other bounds")),
		frame.Facts(
			frame.Fact("tasks enqueued a second", g.Text(rateText(q.GetEnqueuePerSecond()))),
			frame.Fact("of them at once", g.Text(quotaText(q.GetEnqueueBurst()))),
			frame.Fact("bytes a second", g.Text(quotaText(q.GetBytesPerSecond()))),
			frame.Fact("bytes of a payload", g.Text(quotaText(q.GetMaxPayloadBytes()))),
		),
		h.P(h.Class("quiet"), g.Text("They are changed with "), h.Code(g.Text("ddq namespace set")), g.Text(".")),
	}
}

// used is what there is beside what may be. Nil: it is not counted; a bound of 0 is none.
func used(n *int64, most int64) g.Node {
	switch {
	case n == nil:
		return g.Text(quotaText(most))
	case most == 0:
		return g.Group{g.Text(frame.CountText(*n) + ", "), frame.Quiet(quotaText(0))}
	}
	text := frame.CountText(*n) + " of " + frame.CountText(most)
	return g.Group{
		g.El("meter", g.Attr("aria-hidden", "true"), frame.Measure("min", 0), frame.Measure("max", int(most)), frame.Measure("value", int(min(*n, most)))),
		g.Text(" " + text),
	}
}
