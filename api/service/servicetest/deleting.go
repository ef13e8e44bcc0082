package servicetest

import (
	"context"

	"github.com/ddq-io/ddq/store"
)

// OnDelete has a function called before each call that deletes a topic, or else one of its
// shards, whose error is the answer; nil: none.
func (g *gatedStore) OnDelete(call func(topic bool) error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.deleting = call
}

func (g *gatedStore) DropShard(ctx context.Context, s store.Shard) error {
	if err := g.deletes(false); err != nil {
		return err
	}
	return g.Store.DropShard(ctx, s)
}

func (g *gatedStore) DeleteTopic(ctx context.Context, name string, life uint64) error {
	if err := g.deletes(true); err != nil {
		return err
	}
	return g.Store.DeleteTopic(ctx, name, life)
}

func (g *gatedStore) deletes(topic bool) error {
	g.mu.Lock()
	call := g.deleting
	g.mu.Unlock()
	if call == nil {
		return nil
	}
	return call(topic)
}
