package fleet

import (
	"context"
	"net/url"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// workersPage is a page of those who take tasks, of one topic or of all.
type workersPage struct {
	Topic   string
	Now     time.Time
	Workers []*ddqv1.Worker
	Silent  []string // nodes that did not answer
	Next    string
}

func (s *section) workers(ctx context.Context, query url.Values) (frame.View, error) {
	_, now, err := frame.Server(ctx, s.admin)
	if err != nil {
		return frame.View{}, err
	}
	topic := query.Get("topic")
	list, err := s.admin.ListWorkers(ctx, &ddqv1.ListWorkersRequest{Topic: topic, PageSize: frame.PageSize, PageToken: query.Get("page")})
	if err != nil {
		return frame.View{}, err
	}
	p := workersPage{topic, now, list.GetWorkers(), list.GetSilentNodes(), list.GetNextPageToken()}
	return frame.View{Title: "Workers", Page: "workers", Live: true, Body: p.body()}, nil
}

func (p *workersPage) body() g.Node {
	return g.Group{
		g.If(p.Topic != "", h.P(g.Text("Of "), frame.Anchor("topic "+frame.Cut(p.Topic), "topic", "name", p.Topic), g.Text("; "), frame.Anchor("all", "workers"))),
		g.Map(p.Silent, func(node string) g.Node {
			return frame.Warning("Node " + frame.Cut(node) + " did not answer: its workers are missing.")
		}),
		p.table(),
	}
}

func (p *workersPage) table() g.Node {
	if len(p.Workers) == 0 {
		return frame.None(p.Next, "workers", "topic", p.Topic)
	}
	heads := g.Group{frame.Heads("worker", "topic", "node", "since"), frame.NumberHeads("in flight", "credit", "at most"), frame.Heads("program")}
	return g.Group{
		frame.Table("Workers", "Who takes tasks, by node and topic", heads, g.Map(p.Workers, p.row)),
		frame.More(p.Next, "workers", "topic", p.Topic),
	}
}

func (p *workersPage) row(w *ddqv1.Worker) g.Node {
	name := g.Group{g.Text(frame.Cut(w.GetName()))}
	if w.GetName() == "" {
		name = g.Group{frame.Quiet("without a name")}
	}
	since := timestamppb.New(time.UnixMilli(w.GetSinceUnixMs()))
	return h.Tr(
		frame.RowHead(name), h.Td(frame.Anchor(frame.Cut(w.GetTopic()), "topic", "name", w.GetTopic())),
		frame.Cells(frame.Cut(w.GetNode())), h.Td(frame.Time(since, p.Now)),
		frame.Counts(w.GetInFlight(), w.GetCredit(), w.GetMaxInFlight()), frame.Cells(frame.Cut(w.GetClient())),
	)
}
