package topics

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/coming"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// topicsShown is how many topics a page has.
const topicsShown = 50

// overview is what the first page shows.
type overview struct {
	*ddqv1.GetOverviewResponse
	Due    *frame.Columns
	Cut    []string // topics of which not all is in Due
	Create bool     // the visitor may make topics

	Delivered *frame.Columns

	Hour, Week *coming.Forecast // nil: there are no topics
	Now        time.Time
}

const nextMinute = "Due in the next minute, by second"

// minute is how many columns the picture has.
const minute = 60

func (s *section) overview(ctx context.Context, query url.Values) (frame.View, error) {
	r, err := s.admin.GetOverview(ctx, &ddqv1.GetOverviewRequest{PageSize: topicsShown, PageToken: query.Get("page")})
	if err != nil {
		return frame.View{}, err
	}
	o := overview{GetOverviewResponse: r, Create: frame.Who(ctx).Topics()}
	if o.sum(); len(o.GetTopics()) > 0 {
		o.Now = time.UnixMilli(r.GetServer().GetStoreNowUnixMs())
		o.Hour, o.Week = s.forecasts.Hour(ctx, "", o.Now), s.forecasts.Week(ctx, "", o.Now)
	}
	return frame.View{Title: "Overview", Page: "overview", Live: true, Body: o.body()}, nil
}

// sum adds up what comes due in all topics.
func (o *overview) sum() {
	if len(o.GetTopics()) == 0 {
		return
	}
	var later int64
	counts := make([]int64, minute)
	for _, t := range o.GetTopics() {
		known, left := t.GetDue()[:min(len(t.GetDue()), minute)], t.GetDepth().GetScheduled()
		for i, n := range known {
			counts[i], left = counts[i]+n, left-n
		}
		later += max(0, left)
		if len(known) < minute {
			o.Cut = append(o.Cut, fmt.Sprintf("%s from %s on", frame.Cut(t.GetTopic().GetName()), frame.ClockText(o.second(len(known)))))
		}
	}
	o.Due = frame.NewColumns(nextMinute, o.second(0), time.Second, counts)
	o.Due.After = later
	o.Delivered = delivered(o.second(0), o.GetTopics())
}

// second is when a column begins.
func (o *overview) second(n int) time.Time {
	return time.UnixMilli(o.GetDueFromUnixMs()).Add(time.Duration(n) * time.Second)
}

func (o *overview) body() g.Node {
	server := o.GetServer()
	return g.Group{
		g.Map(server.GetWarnings(), frame.Warning),
		incomplete(o.GetOverviewResponse),
		o.Due.Picture(),
		o.cut(),
		o.later(),
		o.Delivered.Picture(),
		o.table(),
		o.week(),
		g.If(o.Create, frame.Fold("Make a topic", h.Class("act"), frame.Post("topic/create", h.Class("filter"),
			frame.Input("Name", h.Name("name"), h.Required(), h.MaxLength("128"), frame.AsTyped()), frame.Button("Make it")))),
		h.P(h.Class("quiet"), g.Text(fmt.Sprintf("ddq %s, node %s of %d, store %s (%s)",
			server.GetVersion(), server.GetNode(), len(o.GetNodes()), server.GetStore(), server.GetDurability()))),
	}
}

// later is what is due in the next hour and two days.
func (o *overview) later() g.Node {
	if o.Week == nil {
		return nil
	}
	return g.Group{o.Hour.Minutes(), o.Week.Hours(o.Now), o.Week.Missing()}
}

func (o *overview) week() g.Node {
	if o.Week == nil {
		return nil
	}
	return o.Week.Heat()
}

// cut says what is not in the picture.
func (o *overview) cut() g.Node {
	if len(o.Cut) == 0 {
		return nil
	}
	return h.P(h.Class("quiet"), g.Text("Too much is due to be counted here: "+strings.Join(o.Cut, ", ")+"."))
}

func (o *overview) table() g.Node {
	if len(o.GetTopics()) == 0 {
		return g.Group{
			h.P(g.Text("There are no topics yet. The first task makes one:")),
			h.Pre(g.Text("ddq enqueue --topic mail --delay 10s --payload hello")),
		}
	}
	heads := g.Group{frame.Heads("topic"), frame.NumberHeads("scheduled", "ready", "running", "done", "dead"), frame.Heads("oldest late"), frame.NumberHeads("enqueued", "delivered", "p99 late"), frame.Heads("last hour", "state")}
	return g.Group{
		frame.Table("Topics", "Tasks of each topic by state, and what happened to them in the last minute", heads, g.Map(o.GetTopics(), topicRow)),
		g.If(o.GetNextPageToken() != "", h.P(frame.Anchor("More topics", "", "page", o.GetNextPageToken()))),
	}
}

func topicRow(o *ddqv1.TopicOverview) g.Node {
	t, d := o.GetTopic(), o.GetDepth()
	var late string
	if o.GetLatenessMs() > 0 {
		late = frame.SpanText(o.GetLatenessMs())
	}
	return h.Tr(
		frame.RowHead(frame.Anchor(frame.Cut(t.GetName()), "topic", "name", t.GetName())),
		frame.Counts(d.GetScheduled(), d.GetReady(), d.GetRunning(), d.GetDone()),
		frame.Bad(frame.CountText(d.GetDead()), d.GetDead() != 0),
		frame.Cells(late), pulseCells(o.GetPulse()), frame.Cells(openText(t)),
	)
}

// openText says what a topic takes and gives.
func openText(t *ddqv1.Topic) string {
	switch {
	case t.GetDeliveryPaused() && t.GetEnqueuePaused():
		return "paused, takes no tasks"
	case t.GetDeliveryPaused():
		return "paused"
	case t.GetEnqueuePaused():
		return "takes no tasks"
	}
	return "open"
}
