package fleet

import (
	"context"
	"net/url"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// nodesPage is the fleet, and the node that answers.
type nodesPage struct {
	Server *ddqv1.DescribeServerResponse
	Nodes  []*ddqv1.Node
	Fleet  bool // the visitor may move what they own
}

func (s *section) nodes(ctx context.Context, _ url.Values) (frame.View, error) {
	server, _, err := frame.Server(ctx, s.admin)
	if err != nil {
		return frame.View{}, err
	}
	list, err := s.admin.ListNodes(ctx, &ddqv1.ListNodesRequest{})
	if err != nil {
		return frame.View{}, err
	}
	p := nodesPage{server, list.GetNodes(), frame.Who(ctx).Fleet()}
	return frame.View{Title: "Nodes", Page: "nodes", Live: true, Body: p.body()}, nil
}

func (p *nodesPage) body() g.Node {
	heads := g.Group{
		frame.Heads("node", "state", "address", "version", "up for"),
		frame.NumberHeads("shards", "due soon", "ready", "held", "subscriptions", "clock, µs"),
		frame.Heads("logs"),
		g.If(p.Fleet, frame.Heads("actions")),
	}
	return g.Group{
		h.P(frame.Anchor("Shards and their owners", "shards"), g.Text(" · "), frame.Anchor("by topic and node", "shards/map")),
		g.Map(p.Server.GetWarnings(), frame.Warning),
		frame.Table("Nodes", "Nodes of the fleet", heads, g.Map(p.Nodes, p.row)),
	}
}

func (p *nodesPage) row(n *ddqv1.Node) g.Node {
	name := g.Group{g.Text(frame.Cut(n.GetName()))}
	if n.GetSelf() {
		name = append(name, g.Text(" "), frame.Quiet("answers"))
	}
	return h.Tr(
		frame.RowHead(name), frame.Cells(frame.StateText(n.GetState()), n.GetAddr(), n.GetVersion()),
		loadCells(n.GetLoad()),
		frame.Logs(n.GetLogs()),
		g.If(p.Fleet, h.Td(h.Class("acts"), acts(n))),
	)
}

func loadCells(l *ddqv1.NodeLoad) g.Node {
	if l == nil {
		return h.Td(h.ColSpan("7"), h.Class("bad"), g.Text("did not answer"))
	}
	return g.Group{
		frame.Cells(frame.SpanText(l.GetUptimeMs())),
		frame.Counts(l.GetShards(), l.GetWheel(), l.GetReady(), l.GetHeld(), l.GetSubscriptions(), l.GetClockOffsetUs()),
	}
}

func acts(n *ddqv1.Node) g.Node {
	name := frame.Hidden("name", n.GetName())
	if n.GetState() == ddqv1.NodeState_NODE_STATE_DRAINING {
		return frame.Post("node/undrain", name, frame.Button("Undrain", h.Aria("label", "Undrain "+frame.Cut(n.GetName()))))
	}
	return g.Group{
		frame.Anchor("Plan", "shards", "drain", n.GetName()), g.Text(" "),
		frame.Fold("Drain", frame.Post("node/drain", name, frame.Danger("Drain it", h.Aria("label", "Drain it: "+frame.Cut(n.GetName()))))),
	}
}
