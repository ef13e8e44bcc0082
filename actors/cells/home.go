package cells

import (
	"context"
	"slices"

	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/store"
)

// homewards is the cell of a shard that remembers up to which number it has sent ends home.
const homewards = store.CellID("thome")

// endsAtATime is how many ends one commit sends.
const endsAtATime = 1000

// sendHome has the ends of tasks whose workflows are in other topics sent there: they go into the
// out-box, each once, and the courier hands them on.
func (l *look) sendHome(ctx context.Context) error {
	for ends := range slices.Chunk(l.home, endsAtATime) {
		if err := l.sendEnds(ctx, ends); err != nil {
			return err
		}
		for i := range ends {
			l.settled(ends[i].To)
		}
	}
	return nil
}

func (l *look) sendEnds(ctx context.Context, ends []store.Parcel) error {
	t, err := (mover{l}).tally(ctx, l.ID, homewards)
	if err != nil {
		return err
	}
	c := store.Commit{Take: l.Progress.Taken} // see stepFlow
	for i := range ends {
		if ends[i].Number <= t.last {
			continue
		}
		p, ok, err := workflow.Home(&ends[i])
		switch {
		case err != nil:
			return err
		case !ok:
			continue
		}
		c.Send = append(c.Send, p)
		t.count(ends[i].Number)
	}
	if len(c.Send) == 0 {
		return nil
	}
	c.Puts = []store.Put{t.put}
	_, results, err := l.commitAll(ctx, l.ID, &l.Fence, []store.Commit{c})
	if err == nil && results[0].Status != store.OK && !schedule.Landed(&c, &results[0]) {
		err = store.ErrUnavailable // another owner was quicker: the next look knows
	}
	l.out.Sent = l.out.Sent || err == nil
	return err
}
