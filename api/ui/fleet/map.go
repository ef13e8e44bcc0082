package fleet

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

const (
	mapPage  = 1000   // shards of a call
	mapMost  = 10_000 // shards of a map
	mapNodes = 50     // columns of a map
	mapRows  = 200
	mapMoves = 200
)

// shardMap is who owns how many shards of which topic, and which shards are on the move.
type shardMap struct {
	nodes  []string
	topics []string // in the order of the list
	owned  map[string]map[string]int
	moves  []*ddqv1.Shard // that are not where they should be
	more   bool           // there are others that were not looked at
}

// noOwner is the column of shards that nobody owns.
const noOwner = ""

func (s *section) shardMap(ctx context.Context, query url.Values) (frame.View, error) {
	list, err := s.admin.ListNodes(ctx, &ddqv1.ListNodesRequest{WithoutLoad: true})
	if err != nil {
		return frame.View{}, err
	}
	m := shardMap{owned: map[string]map[string]int{}}
	for _, n := range list.GetNodes() {
		m.nodes = append(m.nodes, n.GetName())
	}
	token := query.Get("page")
	for seen := 0; seen < mapMost && len(m.topics) < mapRows; {
		list, err := s.admin.ListShards(ctx, &ddqv1.ListShardsRequest{PageSize: mapPage, PageToken: token})
		if err != nil {
			return frame.View{}, err
		}
		m.add(list.GetShards())
		seen += mapPage
		if token = list.GetNextPageToken(); token == "" {
			break
		}
	}
	m.more = token != ""
	return frame.View{Title: "Shards by topic and node", Page: "nodes", Body: m.body()}, nil
}

func (m *shardMap) add(shards []*ddqv1.Shard) {
	for _, s := range shards {
		if m.owned[s.GetTopic()] == nil {
			m.owned[s.GetTopic()] = map[string]int{}
			m.topics = append(m.topics, s.GetTopic())
		}
		m.owned[s.GetTopic()][s.GetOwner()]++
		if s.GetOwner() != s.GetPlacedOn() {
			m.moves = append(m.moves, s)
		}
	}
}

// columns are the nodes of the fleet, and those that own something and are not of it.
func (m *shardMap) columns() []string {
	all, gone := slices.Clone(m.nodes), map[string]bool{}
	for _, owners := range m.owned {
		for owner := range owners {
			if owner != noOwner && !slices.Contains(all, owner) {
				gone[owner] = true
			}
		}
	}
	all = append(all, slices.Sorted(maps.Keys(gone))...)
	if slices.ContainsFunc(m.topics, func(t string) bool { return m.owned[t][noOwner] > 0 }) {
		all = append(all, noOwner)
	}
	return all[:min(len(all), mapNodes)]
}

func (m *shardMap) body() g.Node {
	return g.Group{
		h.P(frame.Anchor("Nodes", "nodes"), g.Text(" · "), frame.Anchor("each shard", "shards")),
		g.If(m.more, frame.Warning(fmt.Sprintf("There are more shards than these, which are those of %d topics.", len(m.topics)))),
		m.onTheMove(),
		m.table(),
	}
}

// onTheMove are the shards whose owner is not the node that should own them.
func (m *shardMap) onTheMove() g.Node {
	if len(m.moves) == 0 {
		return h.P(g.Text("No shard is on the move: each is where it should be."))
	}
	list := g.Map(m.moves[:min(len(m.moves), mapMoves)], func(s *ddqv1.Shard) g.Node {
		return h.Li(g.Text(fmt.Sprintf("%s %d: %s → %s", frame.Cut(s.GetTopic()), s.GetShard(), ownerText(s.GetOwner()), ownerText(s.GetPlacedOn()))))
	})
	return g.Group{
		frame.Warning(frame.CountText(int64(len(m.moves))) + " shards are on the move: their owner is not the node that should own them."),
		frame.Fold("Which", h.Ul(list), g.If(len(m.moves) > mapMoves, h.P(h.Class("quiet"), g.Text("and others")))),
	}
}

func nodeHead(node string) g.Node {
	return h.Th(h.Scope("col"), h.Class("number"), h.Span(g.Text(ownerText(node))))
}

func (m *shardMap) table() g.Node {
	if len(m.topics) == 0 {
		return h.P(g.Text("There are no shards."))
	}
	columns := m.columns()
	heads := g.Group{frame.Heads("topic"), g.Map(columns, nodeHead), frame.NumberHeads("in all")}
	return frame.Table("Shards by topic and node", "How many shards of each topic a node owns", heads, g.Map(m.topics[:min(len(m.topics), mapRows)], func(topic string) g.Node {
		all, cells := int64(0), g.Group{}
		for _, n := range m.owned[topic] {
			all += int64(n)
		}
		for _, node := range columns {
			cells = append(cells, frame.Counts(int64(m.owned[topic][node])))
		}
		return h.Tr(frame.RowHead(frame.Anchor(frame.Cut(topic), "shards", "topic", topic)), cells, frame.Counts(all))
	}))
}
