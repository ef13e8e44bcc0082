package cells

import (
	"context"
	"maps"
	"slices"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// askFormer asks runs to end that began before a reshard. A look that fails in between is made
// anew, and asks once more.
func (l *look) askFormer(ctx context.Context, kept []schedule.Kept, looks []schedule.Look) error {
	asks := make(map[store.Shard][]store.Commit)
	for i := range kept {
		ask, former := kept[i].AskFormer(l.Topic, looks[i].Cell.ID.Key(), l.ID.N)
		for _, s := range former {
			asks[s] = append(asks[s], ask)
		}
	}
	for _, s := range slices.SortedFunc(maps.Keys(asks), place.Compare) {
		if err := l.commitElsewhere(ctx, s, asks[s]); err != nil {
			return err
		}
	}
	return nil
}

// commitElsewhere makes commits without cells in another shard.
func (l *look) commitElsewhere(ctx context.Context, s store.Shard, commits []store.Commit) error {
	stamp, results, err := l.commitAll(ctx, s, nil, commits)
	if err != nil {
		return err
	}
	for i := range results {
		if c := commits[i]; results[i].Status == store.OK {
			l.out.Elsewhere = append(l.out.Elsewhere, fleet.Committed{Shard: s, Commit: c, Stamp: stamp, Asked: fleet.RunningHolds(ctx, l.Tasks, s, c.Cancels)})
		}
	}
	return nil
}
