package upkeep

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ddq-io/ddq/actors/ordered"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// reindexPage is how many tasks are indexed in one call of the store.
const reindexPage = 200

// indexer brings the indexes of shards to what their topics say, one shard after the
// other, in a goroutine of its own: it may take minutes.
type indexer struct {
	wake chan struct{} // holds one

	mu     sync.Mutex
	behind map[store.Shard]store.IndexSet // guarded by mu
}

func newIndexer() *indexer {
	return &indexer{wake: make(chan struct{}, 1), behind: make(map[store.Shard]store.IndexSet)}
}

// want has a shard looked at. One that is as it should be costs a call of the store.
func (x *indexer) want(shard store.Shard, set store.IndexSet) {
	x.mu.Lock()
	x.behind[shard] = set
	x.mu.Unlock()
	select {
	case x.wake <- struct{}{}:
	default: // it will see
	}
}

// next takes the first shard that waits.
func (x *indexer) next() (shard store.Shard, set store.IndexSet, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for shard, set = range ordered.All(x.behind, place.Compare) {
		delete(x.behind, shard)
		return shard, set, true
	}
	return shard, "", false
}

// indexShards goes on until ctx ends.
func (s *Upkeep) indexShards(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.indexer.wake:
			s.IndexBehind(ctx)
		}
	}
}

// IndexBehind indexes what waits. A shard that could not be finished, because a node did
// not know yet what is indexed or the store failed, comes again with the next chores.
func (s *Upkeep) IndexBehind(ctx context.Context) {
	for shard, set, ok := s.indexer.next(); ok && ctx.Err() == nil; shard, set, ok = s.indexer.next() {
		begun := time.Now()
		pages, err := s.reindex(ctx, shard, set)
		switch {
		case errors.Is(err, store.ErrReindexed):
			s.node.Log().Info("attributes of a shard not indexed yet", "topic", shard.Topic, "shard", shard.N, "err", err)
		case err != nil:
			s.noteIncomplete(ctx, err)
		case pages > 0:
			s.node.Log().Info("attributes of a shard indexed", "topic", shard.Topic, "shard", shard.N, "attributes", set.Names(), "took", time.Since(begun))
		}
	}
}

// reindex makes a shard complete for a set, and returns how many pages that took.
func (s *Upkeep) reindex(ctx context.Context, shard store.Shard, set store.IndexSet) (pages int, err error) {
	for cursor := ""; ; pages++ {
		if cursor, err = s.store.Reindex(ctx, shard, set, cursor, reindexPage); err != nil || cursor == "" {
			return pages, err
		}
	}
}

// noteIndex has a shard indexed whose index is not what its topic says.
func (s *Upkeep) noteIndex(t *store.Topic, shard store.Shard, stats *store.Stats) {
	if stats.Index.Ready != t.Indexed {
		s.indexer.want(shard, t.Indexed)
	}
}

// IndexNow begins with what a change of the topic asks for, as far as it is for this node
// to do.
func (s *Upkeep) IndexNow(t *store.Topic) {
	for _, shard := range place.Shards(t) {
		if s.node.Membership().Owns(shard) {
			s.indexer.want(shard, t.Indexed)
		}
	}
}
