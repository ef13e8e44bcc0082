// Package listing walks through what lies in the shards of topics, a page at a time.
package listing

import (
	"context"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// Position is where a listing goes on: behind a key in a shard of a topic. The zero one is the
// beginning.
type Position[K any] struct {
	Topic string
	Shard int
	After K
}

// Page is what is filled on the way.
type Page[K any] interface {
	// Full reports whether the page has no room for more.
	Full() bool
	// Read reads on in a shard, behind a key; there is no more when that was the end of the shard.
	Read(ctx context.Context, t *store.Topic, shard store.Shard, after K) (next K, more bool, err *problem.Error)
}

// Fill goes on through topics, which are in order, until the page is full or nothing is left, and
// returns where it stopped.
func Fill[K any](ctx context.Context, page Page[K], topics []store.Topic, at Position[K]) (Position[K], *problem.Error) {
	for i := range topics {
		t := &topics[i]
		for _, shard := range place.Shards(t) {
			if t.Name < at.Topic || t.Name == at.Topic && shard.N < at.Shard {
				continue
			}
			if t.Name != at.Topic || shard.N != at.Shard {
				at = Position[K]{Topic: t.Name, Shard: shard.N}
			}
			for more := true; more; {
				if page.Full() {
					return at, nil
				}
				var err *problem.Error
				if at.After, more, err = page.Read(ctx, t, shard, at.After); err != nil {
					return at, err
				}
			}
		}
	}
	return at, nil
}
