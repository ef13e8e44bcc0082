package metrics

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/actors/clock"
	"github.com/ddq-io/ddq/store"
)

// ObserveCells returns the cells of a store as a node uses them: see Observe.
func ObserveCells(cells store.Cells, clockOf func(store.Shard) *clock.Clock, heard func(s store.Shard, in int64)) store.Cells {
	return observedCells{cellStore: cells, observed: observedStore{clockOf: clockOf, heard: heard}}
}

// cellStore is the role under another name: one field cannot be called as its method.
type cellStore = store.Cells

// observedCells lets clocks and shards learn from the stamps of commits.
type observedCells struct {
	cellStore
	observed observedStore
}

func (o observedCells) Commit(ctx context.Context, s store.Shard, f *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error) {
	sent := time.Now()
	stamp, results, err := o.cellStore.Commit(ctx, s, f, commits)
	if err == nil {
		o.observed.observeClock(s, sent, time.Now(), stamp)
		o.observed.observeBox(s, stamp)
	}
	return stamp, results, err
}
