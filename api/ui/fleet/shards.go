package fleet

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

// shardsPage is a page of shards, of one topic or of all, and what would move.
type shardsPage struct {
	Topic  string
	Now    time.Time
	Shards []*ddqv1.Shard
	Next   string
	Drain  string // the node whose drain is planned; empty: none
	Moves  []*ddqv1.ShardMove
	Fleet  bool
	Of     *resharding // of the topic; nil: the page is of all
}

func (s *section) shards(ctx context.Context, query url.Values) (frame.View, error) {
	_, now, err := frame.Server(ctx, s.admin)
	if err != nil {
		return frame.View{}, err
	}
	p := shardsPage{Topic: query.Get("topic"), Now: now, Drain: query.Get("drain"), Fleet: frame.Who(ctx).Fleet()}
	list, err := s.admin.ListShards(ctx, &ddqv1.ListShardsRequest{Topic: p.Topic, PageSize: frame.PageSize, PageToken: query.Get("page")})
	if err != nil {
		return frame.View{}, err
	}
	p.Shards, p.Next = list.GetShards(), list.GetNextPageToken()
	if p.Topic != "" {
		if p.Of, err = s.resharding(ctx, p.Topic); err != nil {
			return frame.View{}, err
		}
	}
	if p.Drain != "" {
		plan, err := s.admin.PlanRebalance(ctx, &ddqv1.PlanRebalanceRequest{Drain: []string{p.Drain}})
		if err != nil {
			return frame.View{}, err
		}
		p.Moves = plan.GetMoves()
	}
	return frame.View{Title: "Shards", Page: "nodes", Live: true, Body: p.body()}, nil
}

func (p *shardsPage) body() g.Node {
	var of g.Group
	if p.Topic != "" {
		of = g.Group{g.Text("Of "), frame.Anchor("topic "+frame.Cut(p.Topic), "topic", "name", p.Topic), g.Text("; "), frame.Anchor("all", "shards"), g.Text("; ")}
	}
	return g.Group{
		h.P(of, frame.Anchor("nodes", "nodes"), g.Text("; "), frame.Anchor("by topic and node", "shards/map")),
		g.Iff(p.Of != nil, func() g.Node { return p.Of.state() }),
		g.If(p.Drain != "", p.plan()), p.table(),
		g.Iff(p.Of != nil, func() g.Node { return p.Of.act() }),
	}
}

// plan says what a drain would move.
func (p *shardsPage) plan() g.Node {
	text := fmt.Sprintf("A drain of %s would move %d shards", frame.Cut(p.Drain), len(p.Moves))
	if len(p.Moves) == 0 {
		return frame.Warning(text + ": it owns none, or is alone.")
	}
	moves := g.Map(p.Moves, func(m *ddqv1.ShardMove) g.Node {
		return h.Li(g.Text(fmt.Sprintf("%s %d: %s → %s", frame.Cut(m.GetTopic()), m.GetShard(), ownerText(m.GetFrom()), ownerText(m.GetTo()))))
	})
	return g.Group{frame.Warning(text + "."), frame.Fold("Which", g.Attr("open"), h.Ul(moves))}
}

func ownerText(node string) string {
	if node == "" {
		return "nobody"
	}
	return frame.Cut(node)
}

func (p *shardsPage) table() g.Node {
	if len(p.Shards) == 0 {
		return frame.None(p.Next, "shards", "topic", p.Topic)
	}
	heads := g.Group{
		frame.Heads("shard", "owner"), frame.NumberHeads("epoch", "scheduled", "ready", "running", "dead"), frame.Heads("oldest late"),
		g.If(p.Fleet, frame.Heads("actions")),
	}
	return g.Group{
		frame.Table("Shards", "", heads, g.Map(p.Shards, p.row)),
		frame.More(p.Next, "shards", "topic", p.Topic),
	}
}

func (p *shardsPage) row(s *ddqv1.Shard) g.Node {
	shard := g.Group{frame.Anchor(frame.Cut(s.GetTopic()), "topic", "name", s.GetTopic()), g.Textf(" %d", s.GetShard())}
	if s.GetFormer() {
		shard = append(shard, g.Text(" "), frame.Quiet("former"))
	}
	owner := g.Group{g.Text(ownerText(s.GetOwner()))}
	if s.GetOwner() != s.GetPlacedOn() {
		owner = append(owner, g.Text(" "), frame.Quiet("should be "+frame.Cut(s.GetPlacedOn())))
	}
	d := s.GetDepth()
	return h.Tr(
		frame.RowHead(shard), h.Td(owner), frame.Digits(s.GetEpoch()),
		frame.Counts(d.GetScheduled(), d.GetReady(), d.GetRunning(), d.GetDead()), frame.Cells(frame.SpanText(s.GetLatenessMs())),
		g.If(p.Fleet, h.Td(release(s))),
	)
}

// release is the form that makes a shard's owner give it up, where there is one.
func release(s *ddqv1.Shard) g.Node {
	if s.GetOwner() == "" {
		return nil
	}
	n := fmt.Sprint(s.GetShard())
	return frame.Fold("Release", frame.Post("shard/release", frame.Hidden("topic", s.GetTopic(), "shard", n),
		frame.Danger("Release it", h.Aria("label", "Release it: "+frame.Cut(s.GetTopic())+" "+n))))
}
