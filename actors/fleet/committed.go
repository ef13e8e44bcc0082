package fleet

import (
	"context"

	"github.com/ddq-io/ddq/store"
)

// Committed is a commit in a shard that was made, of which that is to be told.
type Committed struct {
	Shard  store.Shard
	Commit store.Commit
	Stamp  store.Stamp
	Asked  []EndedHold // that it asks to end
}

// RunningHolds are the holds of those of some tasks of a shard that run, so that their workers are
// told that they are to end. Those that are not found see it when they extend.
func RunningHolds(ctx context.Context, tasks store.Reader, s store.Shard, ids []string) (holds []EndedHold) {
	if len(ids) == 0 {
		return nil
	}
	_, found, err := store.GetAll(ctx, tasks, s, ids)
	if err != nil {
		return nil
	}
	for _, f := range found {
		if f.State == store.StateRunning {
			holds = append(holds, EndedHold{ID: f.ID, Token: f.Token})
		}
	}
	return holds
}
