package server

import (
	"context"
	"slices"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/service/nodes"
	"github.com/ddq-io/ddq/api/service/scope"
	"github.com/ddq-io/ddq/api/wire"
	"github.com/ddq-io/ddq/store"
)

func (a *admin) ListNodes(ctx context.Context, r *ddqv1.ListNodesRequest) (*ddqv1.ListNodesResponse, error) {
	nodes, err := a.nodes(ctx, r.WithoutLoad)
	if err != nil {
		return nil, err
	}
	out := &ddqv1.ListNodesResponse{}
	for i := range nodes {
		n := nodeWire(&nodes[i])
		if load := nodes[i].Load; load != nil {
			n.Logs = logsWire(ctx, load.Logs)
		}
		out.Nodes = append(out.Nodes, n)
	}
	return out, nil
}

func (a *admin) nodes(ctx context.Context, withoutLoad bool) ([]nodes.NodeStatus, error) {
	if withoutLoad {
		return a.service.Fleet.NodesWithoutLoad(), nil
	}
	return a.service.Fleet.Nodes(ctx)
}

var nodeStates = [...]ddqv1.NodeState{
	fleet.MemberJoining:  ddqv1.NodeState_NODE_STATE_JOINING,
	fleet.MemberActive:   ddqv1.NodeState_NODE_STATE_ACTIVE,
	fleet.MemberDraining: ddqv1.NodeState_NODE_STATE_DRAINING,
}

func nodeWire(n *nodes.NodeStatus) *ddqv1.Node {
	out := &ddqv1.Node{
		Name:    n.Name,
		Addr:    n.Addr,
		Zone:    n.Zone,
		Version: n.Version,
		State:   wire.Enum(nodeStates[:], n.State),
		Self:    n.Self,
	}
	if n.Load == nil {
		return out
	}
	out.Load = &ddqv1.NodeLoad{
		UptimeMs:      n.Load.Uptime.Milliseconds(),
		ClockOffsetUs: n.Load.ClockOffset.Microseconds(),
		Shards:        int64(len(n.Load.Shards)),
		Subscriptions: int64(n.Load.Subscriptions),
	}
	for i := range n.Load.Shards {
		s := &n.Load.Shards[i]
		out.Load.Wheel += int64(s.Wheel)
		out.Load.Ready += int64(s.Ready)
		out.Load.Held += int64(s.Held)
	}
	return out
}

// logsWire leaves out topics of other namespaces.
func logsWire(ctx context.Context, l *fleet.Logs) *ddqv1.NodeLogs {
	logs := wire.Logs(l)
	if logs != nil {
		logs.Topics = slices.DeleteFunc(logs.Topics, func(t *ddqv1.TopicLogs) bool { return !scope.Has(ctx, t.Topic) })
	}
	return logs
}

func (a *admin) ListShards(ctx context.Context, r *ddqv1.ListShardsRequest) (*ddqv1.ListShardsResponse, error) {
	size, e := pageSize(r.PageSize)
	if e != nil {
		return nil, e
	}
	shards, next, err := a.service.Fleet.Shards(ctx, r.Topic, size, r.PageToken)
	if err != nil {
		return nil, err
	}
	out := &ddqv1.ListShardsResponse{NextPageToken: next}
	for i := range shards {
		out.Shards = append(out.Shards, shardWire(&shards[i]))
	}
	return out, nil
}

func shardWire(s *nodes.ShardStatus) *ddqv1.Shard {
	out := &ddqv1.Shard{
		Topic:           s.Topic,
		Shard:           int32(s.N),
		Owner:           s.Owner,
		PlacedOn:        s.Placed,
		Epoch:           s.Epoch,
		Depth:           depthWire(s.Depth),
		OldestDueUnixMs: int64(s.Oldest),
		Former:          s.Former,
		LatenessMs:      s.Late.Milliseconds(),
	}
	if s.Load != nil {
		out.Load = &ddqv1.OwnedLoad{Wheel: int64(s.Load.Wheel), LatenessMs: s.Late.Milliseconds()}
	}
	return out
}

func (a *admin) DrainNode(ctx context.Context, r *ddqv1.DrainNodeRequest) (*ddqv1.DrainNodeResponse, error) {
	return &ddqv1.DrainNodeResponse{}, a.service.Fleet.Drain(ctx, r.Name, true)
}

func (a *admin) UndrainNode(ctx context.Context, r *ddqv1.UndrainNodeRequest) (*ddqv1.UndrainNodeResponse, error) {
	return &ddqv1.UndrainNodeResponse{}, a.service.Fleet.Drain(ctx, r.Name, false)
}

func (a *admin) SetLogLevel(ctx context.Context, r *ddqv1.SetLogLevelRequest) (*ddqv1.SetLogLevelResponse, error) {
	level, err := logLevelOf(r.Level, r.Topic, r.ForMs)
	if err != nil {
		return nil, err
	}
	until, err := a.service.Fleet.SetLogLevel(ctx, r.Name, level)
	return &ddqv1.SetLogLevelResponse{UntilUnixMs: wire.UnixMillis(until)}, err
}

func (a *admin) PlanRebalance(ctx context.Context, r *ddqv1.PlanRebalanceRequest) (*ddqv1.PlanRebalanceResponse, error) {
	moves, err := a.service.Fleet.Plan(ctx, r.Drain)
	if err != nil {
		return nil, err
	}
	out := &ddqv1.PlanRebalanceResponse{}
	for _, m := range moves {
		out.Moves = append(out.Moves, &ddqv1.ShardMove{Topic: m.Topic, Shard: int32(m.N), From: m.From, To: m.To})
	}
	return out, nil
}

func (a *admin) ReleaseShard(ctx context.Context, r *ddqv1.ReleaseShardRequest) (*ddqv1.ReleaseShardResponse, error) {
	return &ddqv1.ReleaseShardResponse{}, a.service.Fleet.Release(ctx, store.Shard{Topic: r.Topic, N: int(r.Shard)})
}

func (a *admin) ReshardTopic(ctx context.Context, r *ddqv1.ReshardTopicRequest) (*ddqv1.ReshardTopicResponse, error) {
	t, err := a.service.Topics.Reshard(ctx, r.Name, int(r.Shards))
	if err != nil {
		return nil, err
	}
	return &ddqv1.ReshardTopicResponse{Topic: topicWire(&t)}, nil
}
