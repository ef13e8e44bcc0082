package upkeep

import (
	"cmp"
	"context"
	"slices"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/metrics"
	"github.com/ddq-io/ddq/actors/ordered"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// excess is the dead letters that a topic has above its cap, see CapDead.
type excess struct {
	node  *actors.Node
	store choreStore
	topic *store.Topic
}

// deletePage deletes a page of what is too many.
func (x *excess) deletePage(ctx context.Context) (deleted int, err error) {
	over, err := x.count(ctx)
	if err != nil || over == 0 {
		return 0, err
	}
	oldest, err := x.oldest(ctx, min(over, trimPage))
	if err != nil {
		return 0, err
	}
	if over, err = x.count(ctx); err != nil {
		return 0, err
	}
	deleted, err = x.delete(ctx, oldest[:min(over, len(oldest))])
	x.node.Metrics().CountTrimmed(metrics.TrimmedOver, deleted)
	return deleted, err
}

// count is how many dead letters a topic has above its cap.
func (x *excess) count(ctx context.Context) (int, error) {
	stats, err := x.node.CountsOf(ctx, place.Shards(x.topic))
	dead := 0
	for i := range stats {
		dead += int(stats[i].Dead)
	}
	return max(0, dead-x.topic.MaxDead), err
}

// deadEntry is a dead letter and where it lies.
type deadEntry struct {
	shard store.Shard
	store.Entry
}

// oldest are the first n dead letters of a topic to have died.
func (x *excess) oldest(ctx context.Context, n int) ([]deadEntry, error) {
	var all []deadEntry
	for _, shard := range place.Shards(x.topic) {
		page, err := x.store.DeadWindow(ctx, shard, store.WindowQuery{To: store.MaxDue, Limit: n})
		if err != nil {
			return nil, err
		}
		for _, e := range page {
			all = append(all, deadEntry{shard, e})
		}
	}
	slices.SortStableFunc(all, func(a, b deadEntry) int {
		return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.ID, b.ID))
	})
	return all[:min(n, len(all))], nil
}

// delete deletes dead letters that are, in each shard, the oldest ones.
func (x *excess) delete(ctx context.Context, oldest []deadEntry) (deleted int, err error) {
	last, count := make(map[store.Shard]store.Entry), make(map[store.Shard]int)
	for _, e := range oldest {
		last[e.shard] = e.Entry
		count[e.shard]++
	}
	for shard, upTo := range ordered.All(last, place.Compare) {
		n, err := x.store.TrimDead(ctx, shard, upTo, count[shard])
		if deleted += n; err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}
