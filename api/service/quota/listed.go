package quota

import (
	"context"

	"github.com/ddq-io/ddq/store"
)

// listedPage is how many cells one read counts.
const listedPage = 1000

// Counts tells what costs no walk.
type Counts interface {
	CountsOf(ctx context.Context, shards []store.Shard) ([]store.Stats, error)
}

// Lists are those of the cells of shards.
type Lists interface {
	Listed(ctx context.Context, s store.Shard, list string, after store.Wake, limit int) ([]store.Cell, error)
}

// Listed returns how many cells of shards are on a list, or most if there are more. Where the
// shards have fewer cells in all it returns how many these are, and reads none.
func Listed(ctx context.Context, counts Counts, lists Lists, shards []store.Shard, list string, most int64) (n int64, err error) {
	stats, err := counts.CountsOf(ctx, shards)
	if err != nil {
		return 0, err
	}
	cells := int64(0)
	for i := range stats {
		cells += stats[i].Cells
	}
	if cells < most {
		return cells, nil
	}
	return Count(ctx, lists, shards, list, most)
}

// Count returns how many cells of shards are on a list, or most if there are more. It reads them, a page at a time.
func Count(ctx context.Context, lists Lists, shards []store.Shard, list string, most int64) (n int64, err error) {
	for _, shard := range shards {
		for after := (store.Wake{}); n < most; {
			page, err := lists.Listed(ctx, shard, list, after, listedPage)
			if err != nil {
				return 0, err
			}
			if len(page) == 0 {
				break
			}
			last := &page[len(page)-1]
			n, after = n+int64(len(page)), store.Wake{At: last.Listed, ID: last.ID}
		}
	}
	return min(n, most), nil
}
