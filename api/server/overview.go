package server

import (
	"context"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/wire"
)

func (a *admin) GetOverview(ctx context.Context, r *ddqv1.GetOverviewRequest) (*ddqv1.GetOverviewResponse, error) {
	if r.PageSize < 0 {
		return nil, wire.Invalid("OUT_OF_RANGE_FIELD", "page_size", "must not be negative")
	}
	v, err := a.service.Overviews.Get(ctx, int(r.PageSize), r.PageToken)
	if err != nil {
		return nil, err
	}
	server, err := a.DescribeServer(ctx, &ddqv1.DescribeServerRequest{})
	if err != nil {
		return nil, err
	}
	out := &ddqv1.GetOverviewResponse{Server: server, NextPageToken: v.Next, DueFromUnixMs: int64(v.DueFrom), SilentNodes: v.Silent}
	for i := range v.Topics {
		t := &v.Topics[i]
		out.Topics = append(out.Topics, &ddqv1.TopicOverview{
			Topic: topicWire(&t.Topic), Depth: depthWire(t.Depth), LatenessMs: t.Lateness.Milliseconds(), Due: t.Due,
		})
	}
	for i := range v.Nodes {
		out.Nodes = append(out.Nodes, nodeWire(&v.Nodes[i]))
	}
	return out, nil
}
