package service

import (
	"context"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/service/quota"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// outbox bounds how many parcels wait in the boxes of topics: those of a topic that is paused, or
// full, wait as long as it is.
type outbox struct {
	node  *actors.Node
	quota quota.Quota
}

// take counts n more parcels of a topic, or refuses them.
func (o *outbox) take(ctx context.Context, topic *store.Topic, n int) *problem.Error {
	shards := place.Shards(topic)
	most := int64(len(shards) * o.node.Config().Limits.Parcels)
	there, room, err := o.quota.Take(ctx, topic, int64(n), most, func(ctx context.Context) (parcels int64, err error) {
		stats, err := o.node.CountsOf(ctx, shards)
		for i := range stats {
			parcels += stats[i].Parcels
		}
		return parcels, err
	})
	switch {
	case err != nil:
		return problem.FromStore(err)
	case !room:
		return problem.OutboxFull(topic.Name, there)
	}
	return nil
}
