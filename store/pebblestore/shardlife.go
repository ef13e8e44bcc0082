package pebblestore

import (
	"context"

	"github.com/ddq-io/ddq/store"
)

// The record of the topic that a shard belongs to: its life, and a byte that says whether
// that is over.

// OpenShard makes a shard take tasks of the topic that the call is for.
func (s *Store) OpenShard(ctx context.Context, name store.Shard, was store.ShardLife) error {
	_, err := s.change(ctx, name, access{owned: true}, func(t *turn) error {
		next, opens := t.sh.life.Opening(name.Life, was)
		if !opens {
			return nil
		}
		t.opened = was != store.ShardLife{}
		return t.putLife(next)
	})
	return err
}
