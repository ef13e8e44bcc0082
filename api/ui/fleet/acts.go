package fleet

import (
	"context"
	"net/url"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

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
