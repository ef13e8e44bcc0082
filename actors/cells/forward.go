package cells

import (
	"context"
	"slices"

	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
)

// forwards is the cell of a shard that remembers up to which number it has sent parcels on.
const forwards = store.CellID("tin")

// forward sends on what is told to schedules that are not here any more, each once.
func (l mover) forward(ctx context.Context, parcels []store.Parcel) error {
	t, err := l.tally(ctx, l.ID, forwards)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(parcels, l.Knobs.EndBatch) {
		if err := l.forwardSome(ctx, &t, part); err != nil {
			return err
		}
	}
	return nil
}

func (l mover) forwardSome(ctx context.Context, t *tally, parcels []store.Parcel) error {
	var c store.Commit
	last := t.last
	for i := range parcels {
		if p := &parcels[i]; p.Number > t.last {
			c.Send = append(c.Send, schedule.Forward(p, l.ID.Topic))
			last = p.Number
		}
	}
	if len(c.Send) == 0 {
		return nil
	}
	return l.commitCounted(ctx, l.ID, &l.Fence, t, last, c)
}
