package upkeep

import (
	"context"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/store"
)

// FollowServers shows all shards what the store says of them once one of its servers is found
// to be another than before, as after a restart or a failover: what was answered may be lost,
// and each sees whether its own server is meant. Else it asks the store nothing.
func (s *Upkeep) FollowServers(ctx context.Context) {
	info, err := s.node.Store().Info(ctx)
	if err != nil || info.Servers == s.servers {
		return
	}
	s.openActive(ctx) // what was settled is pending again, maybe of topics that were closed since
	if s.look(ctx, func(*actors.Topic, store.Shard) bool { return true }, nil) == nil {
		s.servers = info.Servers // should one have changed since, it is seen the next time
	}
}
