package upkeep

import (
	"context"
	"errors"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// tendLogs has the shards of this node keep logs as their topic says, should whoever
// changed that have failed in between, and forgets what is old in them.
func (s *Upkeep) tendLogs(ctx context.Context, t *store.Topic) error {
	if t.Watch.Retention == 0 {
		return nil
	}
	var errs error
	for _, shard := range place.Shards(t) {
		if !s.node.Membership().Owns(shard) {
			continue
		}
		err := s.node.Topics().KeepLogs(ctx, []store.Shard{shard}, t.Watching())
		for n := 1; n > 0 && err == nil; {
			n, err = s.store.TrimLog(ctx, shard, trimPage)
		}
		errs = errors.Join(errs, err)
	}
	return errs
}
