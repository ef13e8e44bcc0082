package cells

import (
	"context"
	"slices"

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
	c, last := store.Commit{Take: l.Progress.Taken}, t.last // see stepFlow
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
		last = ends[i].Number
	}
	if len(c.Send) == 0 {
		return nil
	}
	err = l.commitCounted(ctx, l.ID, &l.Fence, &t, last, c)
	l.out.Sent = l.out.Sent || err == nil
	return err
}
