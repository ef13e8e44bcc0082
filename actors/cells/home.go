package cells

import (
	"context"
	"slices"

	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/store"
)

// homewards is the cell of a shard that remembers up to which number it has sent ends home.
const homewards = store.CellID("thome")

// sendHome has the ends of tasks whose workflows are in other topics sent there: they go into the
// out-box, each once, and the relay carries them.
func (l *look) sendHome(ctx context.Context) error {
	for ends := range slices.Chunk(l.home, l.Knobs.EndBatch) {
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
	if err = l.commitCounted(ctx, l.ID, &l.Fence, &t, last, c); err == nil {
		l.out.Sent = c.SentTo(l.out.Sent, l.ID.For(l.Topic.Life))
	}
	return err
}
