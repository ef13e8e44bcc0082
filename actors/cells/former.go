package cells

import (
	"context"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// Elsewhere is a commit that was made in another shard, of which that is to be told.
type Elsewhere struct {
	Shard  store.Shard
	Commit store.Commit
	Stamp  store.Stamp
	Asked  []fleet.EndedHold // that it asks to end
}

// cancelInFormer asks runs to end that began before a reshard, and are in the shards of then: a
// commit reaches those of its own shard alone. It comes before the commits: a look that fails in
// between is made anew, and asks once more.
func (l *look) cancelInFormer(ctx context.Context, commits []store.Commit, kept []schedule.Kept) error {
	if !place.Resharding(l.Topic) {
		return nil
	}
	asks := make(map[store.Shard][]store.Commit)
	for i := range kept {
		k := &kept[i]
		if len(k.Cancel)+len(k.CancelFlow)+len(k.CancelWalk) == 0 {
			continue
		}
		ask := store.Commit{Cancels: k.Cancel, Send: commits[i].Send}
		for _, id := range k.Cancel {
			ask.Removes = append(ask.Removes, store.Remove{ID: id}) // when it is pending
		}
		for _, s := range schedule.Shards(l.Topic, k.Schedule.Name) {
			if s.N < l.ID.N {
				asks[s] = append(asks[s], ask)
			}
		}
	}
	for s, commits := range asks {
		if err := l.commitElsewhere(ctx, s, commits); err != nil {
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
			l.out.Elsewhere = append(l.out.Elsewhere, Elsewhere{Shard: s, Commit: c, Stamp: stamp, Asked: l.running(ctx, s, c.Cancels)})
		}
	}
	return nil
}
