package server

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/service/overview"
	"github.com/ddq-io/ddq/api/wire"
)

func (a *admin) GetOverview(ctx context.Context, r *ddqv1.GetOverviewRequest) (*ddqv1.GetOverviewResponse, error) {
	if r.PageSize < 0 {
		return nil, wire.Invalid("OUT_OF_RANGE_FIELD", "page_size", "must not be negative")
	}
	v, err := a.service.Overviews.Get(ctx, overview.Query{Size: int(r.PageSize), Token: r.PageToken, Topic: r.Topic})
	if err != nil {
		return nil, err
	}
	return a.overview(ctx, v)
}

// WatchOverview sends an overview each second until the caller or the node goes away.
func (a *admin) WatchOverview(r *ddqv1.WatchOverviewRequest, stream grpc.ServerStreamingServer[ddqv1.WatchOverviewResponse]) error {
	if r.PageSize < 0 {
		return wire.Invalid("OUT_OF_RANGE_FIELD", "page_size", "must not be negative")
	}
	ctx, done := a.poll(stream.Context())
	defer done()
	q := overview.Query{Size: int(r.PageSize), Token: r.PageToken, Topic: r.Topic}
	err := a.service.Overviews.Watch(ctx, q, func(v *overview.Overview) error {
		out, err := a.overview(ctx, v)
		if err != nil {
			return err
		}
		return stream.Send(&ddqv1.WatchOverviewResponse{Overview: out})
	})
	return a.pollError(stream.Context(), err)
}

// translateFor is how long the server is waited for that says of itself what is in an overview.
const translateFor = 3 * time.Second

// translated is an overview as callers get it.
type translated struct {
	overview *ddqv1.GetOverviewResponse
	err      error
}

// overview is translated once for all who get it. Each gets a copy of its own as far down as the
// guard takes topics out of it.
func (a *admin) overview(ctx context.Context, v *overview.Overview) (*ddqv1.GetOverviewResponse, error) {
	t := v.Companion(func() any {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), translateFor) // others wait for it, too
		defer cancel()
		out, err := a.translate(ctx, v)
		return &translated{out, err}
	}).(*translated)
	if t.err != nil {
		return nil, t.err
	}
	all := t.overview
	return &ddqv1.GetOverviewResponse{
		Server: all.Server, Topics: slices.Clone(all.Topics), NextPageToken: all.NextPageToken, DueFromUnixMs: all.DueFromUnixMs,
		Nodes: all.Nodes, SilentNodes: all.SilentNodes, PulsesIncomplete: all.PulsesIncomplete,
	}, nil
}

func (a *admin) translate(ctx context.Context, v *overview.Overview) (*ddqv1.GetOverviewResponse, error) {
	server, err := a.DescribeServer(ctx, &ddqv1.DescribeServerRequest{})
	if err != nil {
		return nil, err
	}
	out := &ddqv1.GetOverviewResponse{
		Server: server, NextPageToken: v.Next, DueFromUnixMs: int64(v.DueFrom), SilentNodes: v.Silent, PulsesIncomplete: v.Missed,
	}
	for i := range v.Topics {
		t := &v.Topics[i]
		out.Topics = append(out.Topics, &ddqv1.TopicOverview{
			Topic: topicWire(&t.Topic), Depth: depthWire(t.Depth), LatenessMs: t.Lateness.Milliseconds(), Due: t.Due, Pulse: wire.Pulse(t.Pulse),
		})
	}
	for i := range v.Nodes {
		out.Nodes = append(out.Nodes, nodeWire(&v.Nodes[i]))
	}
	return out, nil
}
