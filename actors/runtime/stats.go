package runtime

import (
	"context"
	"slices"

	"github.com/ddq-io/ddq/store"
)

// statsPage is how many shards the store is asked about at a time.
const statsPage = 500

// StatsOf asks for all numbers of shards. On some stores that is a walk over the tasks
// that are due: what does without Ready and OldestMs asks for CountsOf.
func (rt *Runtime) StatsOf(ctx context.Context, shards []store.Shard) ([]store.Stats, error) {
	return inPages(ctx, shards, rt.Store.Stats)
}

// CountsOf asks for the numbers of shards that cost no walk over their tasks.
func (rt *Runtime) CountsOf(ctx context.Context, shards []store.Shard) ([]store.Stats, error) {
	return inPages(ctx, shards, rt.Store.Counts)
}

func inPages(ctx context.Context, shards []store.Shard, ask func(context.Context, []store.Shard) ([]store.Stats, error)) (all []store.Stats, err error) {
	for page := range slices.Chunk(shards, statsPage) {
		stats, err := ask(ctx, page)
		if err != nil {
			return nil, err
		}
		all = append(all, stats...)
	}
	return all, nil
}
