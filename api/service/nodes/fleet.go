package nodes

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/metrics"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/service/overview"
	"github.com/ddq-io/ddq/api/service/pagetoken"
	"github.com/ddq-io/ddq/api/service/scope"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// Fleet is what is asked of the nodes and the shards that they own.
type Fleet struct {
	node      *actors.Node
	store     store.Reader
	topics    func(ctx context.Context, name string) ([]store.Topic, *problem.Error)
	checkName func(name string) *problem.Error
}

// New is what a node is asked of its fleet; topics returns the topic of a name, or all, and checkName says
// why a node cannot have a name.
func New(node *actors.Node, topics func(ctx context.Context, name string) ([]store.Topic, *problem.Error), checkName func(string) *problem.Error) *Fleet {
	return &Fleet{node, node.Store(), topics, checkName}
}

// describeFor is how long nodes are waited for that are asked how they fare.
const describeFor = 2 * time.Second

// describeAll asks members how they fare, all at once. Those that do not answer in
// time are missing.
func (s *Fleet) describeAll(ctx context.Context, members []fleet.Member) map[string]*fleet.PeerStatus {
	answers := fleet.AskAll(ctx, describeFor, members, func(ctx context.Context, m fleet.Member) *fleet.PeerStatus {
		st, err := s.node.Describe(ctx, m, fleet.StatusQuery{})
		if err != nil {
			return nil
		}
		return &st
	})
	found := make(map[string]*fleet.PeerStatus, len(members))
	for i, st := range answers {
		if st != nil {
			found[members[i].Name] = st
		}
	}
	return found
}

// Shards pages through the shards of a topic, of every topic when it is empty.
func (s *Fleet) Shards(ctx context.Context, topic string, size int, token string) (shards []ShardStatus, next string, err error) {
	if size < 0 {
		return nil, "", problem.BadField("page_size", "OUT_OF_RANGE_FIELD", "page_size must not be negative")
	}
	topics, e := s.topics(ctx, topic)
	if e != nil {
		return nil, "", e
	}
	from, ok := decodeShard(token)
	if !ok {
		return nil, "", problem.AsError(store.ErrBadCursor)
	}
	size = min(cmp.Or(size, 100), s.node.Config().Limits.PageSize)
	var page []store.Shard
	active := make(map[string]store.Span, len(topics))
	for i := range topics {
		active[topics[i].Name] = topics[i].Active()
		for _, shard := range place.Shards(&topics[i]) {
			if place.Compare(shard, from) > 0 {
				page = append(page, shard)
			}
		}
	}
	if len(page) > size {
		page = page[:size]
		next = encodeShard(page[size-1])
	}
	shards, err = s.shardStatus(ctx, page)
	for i := range shards {
		shards[i].Former = shards[i].N < active[shards[i].Topic].First
	}
	return shards, next, err
}

func (s *Fleet) shardStatus(ctx context.Context, page []store.Shard) ([]ShardStatus, error) {
	stats, err := s.store.Stats(ctx, page)
	if err != nil {
		return nil, problem.AsError(err)
	}
	loads := make(map[store.Shard]*fleet.OwnedShard)
	for _, node := range s.describeAll(ctx, s.node.Members()) {
		for i := range node.Shards {
			loads[node.Shards[i].Shard] = &node.Shards[i]
		}
	}
	out := make([]ShardStatus, len(page))
	for i, st := range stats {
		out[i] = ShardStatus{
			Shard:  page[i],
			Owner:  st.Owner,
			Placed: s.placedOn(page[i]),
			Epoch:  st.Epoch,
			Depth:  metrics.Depth{}.Plus(&st),
			Oldest: st.OldestMs,
			Load:   loads[page[i]],
		}
		if st.Ready > 0 { // as the store has it: the owner may not know, or not answer
			out[i].Late = s.node.Clocks().NowAt(page[i]).Sub(st.OldestMs)
		}
	}
	return out, nil
}

func (s *Fleet) placedOn(shard store.Shard) string {
	if v := s.node.Membership().View(); v != nil {
		return v.Owner(shard)
	}
	return s.node.Config().Node
}

const shardsPage = "shards:"

// encodeShard makes a page token of the last shard of a page.
func encodeShard(s store.Shard) string {
	return pagetoken.Make(shardsPage, fmt.Sprintf("%d:%s", s.N, s.Topic))
}

func decodeShard(token string) (s store.Shard, ok bool) {
	if token == "" {
		return store.Shard{N: -1}, true
	}
	position, ok := pagetoken.Position(shardsPage, token)
	if !ok {
		return s, false
	}
	_, err := fmt.Sscanf(position, "%d:%s", &s.N, &s.Topic)
	return s, err == nil
}

// CheckName says why a node cannot have a name; nil when it can.
func (s *Fleet) CheckName(name string) *problem.Error { return s.checkName(name) }

// Drain makes a node give up its shards, or take shards again.
func (s *Fleet) Drain(ctx context.Context, name string, draining bool) error {
	if name == s.node.Config().Node {
		return s.node.Peer().Drain(draining)
	}
	m, ok := s.node.Membership().Member(name)
	if !ok {
		return errNoNode(name)
	}
	return problem.AsError(s.node.Membership().Peers().Drain(ctx, m, draining))
}

// Plan says which shards of all namespaces would move if these nodes drained; with none, which are
// not where they should be.
func (s *Fleet) Plan(ctx context.Context, drain []string) ([]ShardMove, error) {
	view, err := s.viewWithout(drain)
	if err != nil {
		return nil, err
	}
	topics, e := s.topics(scope.All(ctx), "")
	if e != nil {
		return nil, e
	}
	var moves []ShardMove
	for i := range topics {
		shards := place.Shards(&topics[i])
		stats, err := s.store.Counts(ctx, shards)
		if err != nil {
			return nil, problem.AsError(err)
		}
		for n, st := range stats {
			move := ShardMove{Shard: shards[n], From: st.Owner, To: s.node.Config().Node}
			if view != nil {
				move.To = view.Owner(shards[n])
			}
			if move.From != move.To && (move.From != "" || st.Pending+st.Running > 0) {
				moves = append(moves, move)
			}
		}
	}
	return moves, nil
}

func (s *Fleet) viewWithout(names []string) (fleet.View, error) {
	v := s.node.Membership().View()
	for _, name := range names {
		if v == nil && name != s.node.Config().Node {
			return nil, errNoNode(name)
		}
		if v != nil && !slices.ContainsFunc(v.Members(), func(m fleet.Member) bool { return m.Name == name }) {
			return nil, errNoNode(name)
		}
	}
	if v == nil {
		return nil, nil
	}
	return v.Without(names...), nil
}

// Release makes the owner of a shard give it up.
func (s *Fleet) Release(ctx context.Context, shard store.Shard) error {
	topics, e := s.topics(ctx, cmp.Or(shard.Topic, "?"))
	if e != nil {
		return e
	}
	if !slices.Contains(place.Shards(&topics[0]), shard) {
		return actors.ErrNoShard(shard)
	}
	stats, err := s.store.Counts(ctx, []store.Shard{shard})
	if err != nil {
		return problem.AsError(err)
	}
	switch owner := stats[0].Owner; owner {
	case "":
		return &problem.Error{Kind: problem.Precondition, Reason: "NOT_OWNED", Field: "shard", Message: "nobody owns the shard"}
	case s.node.Config().Node:
		return s.node.Peer().ReleaseShard(ctx, shard)
	default:
		m, ok := s.node.Membership().Member(owner)
		if !ok {
			return errNoNode(owner)
		}
		return problem.AsError(s.node.Membership().Peers().Release(ctx, m, shard))
	}
}

func errNoNode(name string) *problem.Error {
	return &problem.Error{Kind: problem.NotFound, Reason: "NO_NODE", Field: "name", Message: fmt.Sprintf("no node %q in the fleet", name)}
}

// Nodes returns the members of the fleet and how they fare; a node that stands
// alone is one.
func (s *Fleet) Nodes(ctx context.Context) ([]NodeStatus, error) {
	nodes := s.NodesWithoutLoad()
	loads := s.describeAll(ctx, s.node.Members())
	for i := range nodes {
		nodes[i].Load = loads[nodes[i].Name]
	}
	return nodes, nil
}

// NodesWithoutLoad is Nodes without asking any other node.
func (s *Fleet) NodesWithoutLoad() []NodeStatus {
	members := s.node.Members()
	nodes := make([]NodeStatus, len(members))
	for i, m := range members {
		nodes[i] = NodeStatus{Member: m, Self: m.Name == s.node.Config().Node}
	}
	return nodes
}

// NodeStatus is a member of the fleet.
type NodeStatus = overview.Node

// ShardStatus is a shard and who owns it.
type ShardStatus struct {
	store.Shard
	Former bool   // of before a reshard: it takes no new task
	Owner  string // of the last claim; empty when released or never claimed
	Placed string // who should own it
	Epoch  int64
	Depth  metrics.Depth
	Oldest store.Millis      // due time of the oldest pending task, 0 when there is none
	Late   time.Duration     // of the oldest ready task
	Load   *fleet.OwnedShard // nil when the owner did not answer in time
}

// ShardMove is one step of a rebalance.
type ShardMove struct {
	store.Shard
	From string // empty when nobody owns it
	To   string // empty when nobody could
}
