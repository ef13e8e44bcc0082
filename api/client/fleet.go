package client

import (
	"context"
	"iter"
	"time"

	"github.com/ddq-io/ddq/api/client/internal/call"
	"github.com/ddq-io/ddq/api/client/internal/wire"
	"github.com/ddq-io/ddq/api/client/loglevel"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// NodeState says whether a node wants shards.
type NodeState string

// Only active nodes own shards.
const (
	NodeJoining  NodeState = "joining"
	NodeActive   NodeState = "active"
	NodeDraining NodeState = "draining"
)

// Node is a member of the fleet.
type Node struct {
	Name    string
	Addr    string // of its gRPC port
	Zone    string
	Version string
	State   NodeState
	Self    bool          // the node that answered
	Load    *NodeLoad     // nil when the node did not answer in time
	Logs    *loglevel.Now // the same, and of a node of before
}

// NodeLoad is how a node fares.
type NodeLoad struct {
	Uptime        time.Duration
	ClockOffset   time.Duration // of the store's clock from the node's
	Shards        int           // that it owns
	Wheel         int64         // tasks due soon
	Ready         int64         // tasks due and not held
	Held          int64
	Subscriptions int
}

// Shard is a part of a topic and who owns it.
type Shard struct {
	Topic     string
	N         int
	Former    bool   // of before a ReshardTopic: it takes no new task
	Owner     string // of the last claim; empty when it was released or never claimed
	PlacedOn  string // the node that should own it
	Epoch     int64
	Depth     Depth
	OldestDue time.Time     // of the pending tasks; zero when there is none
	Wheel     int64         // tasks due soon, as the owner sees it; -1 when it did not answer
	Lateness  time.Duration // of the oldest task that is due and not held
}

// ShardMove is one step of a rebalance.
type ShardMove struct {
	Topic string
	N     int
	From  string // empty when nobody owns the shard
	To    string // empty when nobody could
}

// Fleet are the calls about servers: the node that answers, the members of the fleet, and
// the shards that they own. A Client has them.
type Fleet struct {
	*caller
	admin ddqv1.AdminServiceClient
}

// Nodes returns the members of the fleet by name. A server that stands alone is one.
func (c *Fleet) Nodes(ctx context.Context) (nodes []Node, err error) {
	reply, err := call.Answer(ctx, c.do, call.Idempotent, c.admin.ListNodes, &ddqv1.ListNodesRequest{})
	return call.List(reply.GetNodes(), nodeFrom), err
}

func nodeFrom(n *ddqv1.Node) Node {
	states := map[ddqv1.NodeState]NodeState{
		ddqv1.NodeState_NODE_STATE_JOINING:  NodeJoining,
		ddqv1.NodeState_NODE_STATE_ACTIVE:   NodeActive,
		ddqv1.NodeState_NODE_STATE_DRAINING: NodeDraining,
	}
	node := Node{
		Name: n.GetName(), Addr: n.GetAddr(), Zone: n.GetZone(), Version: n.GetVersion(),
		State: states[n.GetState()], Self: n.GetSelf(), Logs: loglevel.NowFrom(n.GetLogs()),
	}
	if l := n.GetLoad(); l != nil {
		node.Load = &NodeLoad{
			Uptime:        time.Duration(l.GetUptimeMs()) * time.Millisecond,
			ClockOffset:   time.Duration(l.GetClockOffsetUs()) * time.Microsecond,
			Shards:        int(l.GetShards()),
			Subscriptions: int(l.GetSubscriptions()),
			Wheel:         l.GetWheel(), Ready: l.GetReady(), Held: l.GetHeld(),
		}
	}
	return node
}

// Shards goes through the shards of a topic, of every topic when it is empty. The
// sequence ends with the first error.
func (c *Fleet) Shards(ctx context.Context, topic string) iter.Seq2[Shard, error] {
	return call.Pages(func(token string) ([]Shard, string, error) {
		reply, err := call.Answer(ctx, c.do, call.Idempotent, c.admin.ListShards, &ddqv1.ListShardsRequest{Topic: topic, PageSize: call.PageSize, PageToken: token})
		return call.List(reply.GetShards(), shardFrom), reply.GetNextPageToken(), err
	})
}

func shardFrom(s *ddqv1.Shard) Shard {
	shard := Shard{
		Topic: s.GetTopic(), N: int(s.GetShard()), Former: s.GetFormer(), Owner: s.GetOwner(), PlacedOn: s.GetPlacedOn(), Epoch: s.GetEpoch(),
		Depth: depthFrom(s.GetDepth()), OldestDue: wire.UnixTime(s.GetOldestDueUnixMs()), Lateness: wire.Duration(max(s.GetLatenessMs(), s.GetLoad().GetLatenessMs())), Wheel: -1,
	}
	if l := s.GetLoad(); l != nil {
		shard.Wheel = l.GetWheel()
	}
	return shard
}

// DrainNode makes a node give up its shards. It goes on to take calls, and its workers keep working.
func (c *Fleet) DrainNode(ctx context.Context, name string) error {
	_, err := call.Answer(ctx, c.do, call.Idempotent, c.admin.DrainNode, &ddqv1.DrainNodeRequest{Name: name})
	return err
}

// UndrainNode lets a node own shards again.
func (c *Fleet) UndrainNode(ctx context.Context, name string) error {
	_, err := call.Answer(ctx, c.do, call.Idempotent, c.admin.UndrainNode, &ddqv1.UndrainNodeRequest{Name: name})
	return err
}

// SetLogLevel makes a node log more or less for a while, and returns until when.
func (c *Fleet) SetLogLevel(ctx context.Context, node string, change loglevel.Change) (time.Time, error) {
	return loglevel.Until(call.Answer(ctx, c.do, call.Idempotent, c.admin.SetLogLevel, change.Request(node)))
}

// Plan says which shards would move if these nodes drained; with none, which are
// not where they should be.
func (c *Fleet) Plan(ctx context.Context, drain ...string) (moves []ShardMove, err error) {
	reply, err := call.Answer(ctx, c.do, call.Idempotent, c.admin.PlanRebalance, &ddqv1.PlanRebalanceRequest{Drain: drain})
	for _, m := range reply.GetMoves() {
		moves = append(moves, ShardMove{Topic: m.GetTopic(), N: int(m.GetShard()), From: m.GetFrom(), To: m.GetTo()})
	}
	return moves, err
}

// ReleaseShard makes the owner of a shard give it up. The node that should own it claims it at once.
func (c *Fleet) ReleaseShard(ctx context.Context, topic string, n int) error {
	_, err := call.Answer(ctx, c.do, call.Once, c.admin.ReleaseShard, &ddqv1.ReleaseShardRequest{Topic: topic, Shard: int32(n)})
	return err
}

// ReshardTopic gives a topic another number of shards, 1 to 256, while it runs. When
// it returns new tasks go to new shards; the former ones go on with what they have,
// and go when they are empty. It fails with ErrPrecondition while three former
// generations have tasks left.
func (c *Fleet) ReshardTopic(ctx context.Context, name string, shards int) (topic Topic, err error) {
	reply, err := call.Answer(ctx, c.do, call.Idempotent, c.admin.ReshardTopic, &ddqv1.ReshardTopicRequest{Name: name, Shards: int32(shards)})
	return topicFrom(reply.GetTopic()), err
}
