package fleet

import (
	"context"
	"net/url"
	"time"

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
	if p.Drain != "" {
		plan, err := s.admin.PlanRebalance(ctx, &ddqv1.PlanRebalanceRequest{Drain: []string{p.Drain}})
		if err != nil {
			return frame.View{}, err
		}
		p.Moves = plan.GetMoves()
	}
	return frame.View{Title: "Shards", Page: "nodes", Live: true, Body: p}, nil
}

func (s *section) drainNode(ctx context.Context, form url.Values) (string, string, error) {
	name, err := frame.Required(form, "name")
	if err != nil {
		return "", "", err
	}
	_, err = s.admin.DrainNode(ctx, &ddqv1.DrainNodeRequest{Name: name})
	return frame.Link("nodes"), "draining", err
}

func (s *section) undrainNode(ctx context.Context, form url.Values) (string, string, error) {
	name, err := frame.Required(form, "name")
	if err != nil {
		return "", "", err
	}
	_, err = s.admin.UndrainNode(ctx, &ddqv1.UndrainNodeRequest{Name: name})
	return frame.Link("nodes"), "undrained", err
}

func (s *section) releaseShard(ctx context.Context, form url.Values) (string, string, error) {
	topic, err := frame.Required(form, "topic")
	if err != nil {
		return "", "", err
	}
	n, err := frame.Number(form, "shard")
	if err != nil {
		return "", "", err
	}
	_, err = s.admin.ReleaseShard(ctx, &ddqv1.ReleaseShardRequest{Topic: topic, Shard: int32(n)}) //nolint:gosec // the server refuses a shard that is none
	return frame.Link("shards", "topic", topic), "released", err
}
