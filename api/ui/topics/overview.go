package topics

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// topicsShown is how many topics a page has; each costs two calls.
const topicsShown = 50

// overview is what the first page shows.
type overview struct {
	Server  *ddqv1.DescribeServerResponse
	Now     time.Time // on the store's clock
	Topics  []topicRow
	Next    string // page token; empty on the last page
	Due     *frame.Columns
	Crowded []string // topics of which too much is due to be counted in Due
	Create  bool     // the visitor may make topics
}

// topicRow is a topic with its tasks by state.
type topicRow struct {
	*ddqv1.Topic
	Depth *ddqv1.Depth
}

const nextMinute = "Due in the next minute, by second"

func (s *section) overview(ctx context.Context, query url.Values) (frame.View, error) {
	server, now, err := frame.Server(ctx, s.admin)
	if err != nil {
		return frame.View{}, err
	}
	list, err := s.admin.ListTopics(ctx, &ddqv1.ListTopicsRequest{PageSize: topicsShown, PageToken: query.Get("page")})
	if err != nil {
		return frame.View{}, err
	}
	o := overview{Server: server, Now: now, Next: list.GetNextPageToken(), Create: frame.Who(ctx).Topics()}
	countUntil := time.Now().Add(countInAll)
	for _, t := range list.GetTopics() {
		about, err := s.admin.DescribeTopic(ctx, &ddqv1.DescribeTopicRequest{Name: t.GetName()})
		if status.Code(err) == codes.NotFound {
			continue // it was deleted meanwhile
		}
		if err != nil {
			return frame.View{}, err
		}
		var due *frame.Columns
		if time.Now().Before(countUntil) {
			if due, err = s.due(ctx, t.GetName(), nextMinute, now.Truncate(time.Second), time.Second, 60); err != nil {
				return frame.View{}, err
			}
		}
		o.Topics = append(o.Topics, topicRow{about.GetTopic(), about.GetDepth()})
		if due == nil {
			o.Crowded = append(o.Crowded, t.GetName())
			continue
		}
		o.Due = o.Due.Add(due)
	}
	return frame.View{Title: "Overview", Page: "overview", Live: true, Body: o.body()}, nil
}

func (o *overview) body() g.Node {
	return g.Group{
		g.Map(o.Server.GetWarnings(), frame.Warning),
		o.Due.Picture(),
		o.crowded(),
		o.table(),
		g.If(o.Create, frame.Fold("Make a topic", h.Class("act"), frame.Post("topic/create", h.Class("filter"),
			frame.Input("Name", h.Name("name"), h.Required(), h.MaxLength("128"), frame.AsTyped()), frame.Button("Make it")))),
		h.P(h.Class("quiet"), g.Text(fmt.Sprintf("ddq %s, node %s, store %s (%s)", o.Server.GetVersion(), o.Server.GetNode(), o.Server.GetStore(), o.Server.GetDurability()))),
	}
}

// crowded says which topics are not in the picture.
func (o *overview) crowded() g.Node {
	if len(o.Crowded) == 0 {
		return nil
	}
	names := make([]string, len(o.Crowded))
	for i, name := range o.Crowded {
		names[i] = frame.Cut(name)
	}
	return h.P(h.Class("quiet"), g.Text("Too much is due soon to be counted here: "+strings.Join(names, ", ")+"."))
}

func (o *overview) table() g.Node {
	if len(o.Topics) == 0 {
		return g.Group{
			h.P(g.Text("There are no topics yet. The first task makes one:")),
			h.Pre(g.Text("ddq enqueue --topic mail --delay 10s --payload hello")),
		}
	}
	heads := g.Group{frame.Heads("topic"), frame.NumberHeads("scheduled", "ready", "running", "done", "dead"), frame.Heads("state")}
	return g.Group{
		frame.Table("Topics", "Tasks of each topic, by state", heads, g.Map(o.Topics, topicRow.row)),
		g.If(o.Next != "", h.P(frame.Anchor("More topics", "", "page", o.Next))),
	}
}

func (t topicRow) row() g.Node {
	return h.Tr(
		frame.RowHead(frame.Anchor(frame.Cut(t.GetName()), "topic", "name", t.GetName())),
		frame.Counts(t.Depth.GetScheduled(), t.Depth.GetReady(), t.Depth.GetRunning(), t.Depth.GetDone()),
		frame.Bad(frame.CountText(t.Depth.GetDead()), t.Depth.GetDead() != 0),
		frame.Cells(t.openText()),
	)
}

// openText says what the topic takes and gives.
func (t topicRow) openText() string {
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
