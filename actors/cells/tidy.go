package cells

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/ddq-io/ddq/actors/sent"
	"github.com/ddq-io/ddq/store"
)

// tidy deletes the claims of a shard that has no schedules left, and the tallies of one that has nothing else, once
// those that they are of are gone, or have nothing left of what they count. A shard without cells and tasks is retired.
func (l mover) tidy(ctx context.Context) error {
	if l.out.Progress.Heard > l.out.Progress.Taken || l.out.Again {
		return nil
	}
	cells, _, err := l.Store.CellPage(ctx, l.ID, store.CellTally, "", batch)
	if err != nil {
		return err
	}
	claims, _, err := l.Store.CellPage(ctx, l.ID, store.CellClaim, "", batch)
	if err != nil {
		return err
	}
	var commits []store.Commit
	for _, c := range claims {
		commits = append(commits, store.Commit{Puts: []store.Put{{Cell: store.Cell{ID: c.ID}, If: c.Version}}})
	}
	for _, c := range cells {
		source, of := strings.CutPrefix(string(c.ID), tallyPrefix)
		n, err := strconv.Atoi(source)
		over := c.ID == forwards || c.ID == homewards || of && err == nil && !hasShard(l.Topic, n)
		if from, crosses := sent.From(c.ID); crosses {
			if over, err = l.isPast(ctx, from, c.Body); err != nil {
				return err
			}
		}
		if over {
			commits = append(commits, store.Commit{Puts: []store.Put{{Cell: store.Cell{ID: c.ID}, If: c.Version}}})
		}
	}
	if len(commits) == 0 {
		return nil
	}
	_, _, err = l.commitAll(ctx, l.ID, &l.Fence, commits)
	return err
}

// isPast reports whether a shard has no parcel left that a tally of it says was taken.
func (l mover) isPast(ctx context.Context, from store.Shard, tally []byte) (bool, error) {
	last, err := strconv.ParseInt(string(tally), 10, 64)
	if err != nil {
		return false, err
	}
	first, err := l.Store.Parcels(ctx, from, store.OutBox, 0, 1)
	return err == nil && (len(first) == 0 || first[0].Number > last), err
}

func hasShard(t *store.Topic, n int) bool {
	return slices.ContainsFunc(t.Spans(), func(s store.Span) bool { return n >= s.First && n < s.First+s.Shards })
}
