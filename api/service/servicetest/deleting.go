package servicetest

import (
	"context"

	"github.com/ddq-io/ddq/store"
)

// OnDelete has a function called before each call that deletes a topic, or else one of its
// shards; nil: none.
func (g *gatedStore) OnDelete(call func(topic bool)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.deleting = call
}

func (g *gatedStore) DropShard(ctx context.Context, s store.Shard) error {
	g.deletes(false)
	return g.Store.DropShard(ctx, s)
}

func (g *gatedStore) DeleteTopic(ctx context.Context, name string, life uint64) error {
	g.deletes(true)
	return g.Store.DeleteTopic(ctx, name, life)
}

func (g *gatedStore) deletes(topic bool) {
	g.mu.Lock()
	call := g.deleting
	g.mu.Unlock()
	if call != nil {
		call(topic)
	}
}
