package pebblestore

import (
	"context"
	"fmt"

	"github.com/ddq-io/ddq/store"
)

// cellKeeper keeps cells.
type cellKeeper struct{ *base }

// Cells implements store.Cells.
func (s cellKeeper) Cells(ctx context.Context, name store.Shard, ids []store.CellID) (page []store.Cell, err error) {
	_, err = s.change(ctx, name, access{}, func(t *transaction) (err error) {
		page, err = t.cells.page(ids)
		return err
	})
	if err != nil {
		return nil, err
	}
	return page, nil
}

// Server implements store.Cells.
func (cellKeeper) Server(context.Context, store.Shard) uint64 { return 0 }

// Wakes implements store.Cells.
func (s cellKeeper) Wakes(ctx context.Context, name store.Shard, q store.WakeQuery) (stamp store.Stamp, page []store.Wake, err error) {
	stamp, err = s.change(ctx, name, access{}, func(t *transaction) (err error) {
		if q.After == (store.Wake{}) {
			page, err = t.cells.firstWakes(q.To, q.Limit)
			return err
		}
		prefix, upper := appendPrefix(nil, t.sh.number, tableWakes), afterMillis(t.sh.number, tableWakes, q.To)
		page, err = t.cells.wakes(prefix, appendMillis(nil, q.After.At), q.After.ID, upper, q.Limit)
		return err
	})
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return stamp, page, nil
}

// Listed implements store.Cells.
func (s cellKeeper) Listed(ctx context.Context, name store.Shard, list string, after store.Wake, limit int) (page []store.Cell, err error) {
	if len(list) > maxList {
		return nil, nil
	}
	_, err = s.change(ctx, name, access{}, func(t *transaction) (err error) {
		page, err = t.cells.listed(list, after, limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	return page, nil
}

// kindCells marks the cursors of walks over cells. It is none of store's kinds.
const kindCells store.Kind = 0xfd

// CellPage implements store.Cells. The position of its cursor is the id of the last cell of
// the page before.
func (s cellKeeper) CellPage(ctx context.Context, name store.Shard, kind byte, cursor string, limit int) (page []store.Cell, next string, err error) {
	position, err := parseCursor(kindCells, cursor)
	if err != nil {
		return nil, "", err
	}
	if position != nil && position[0] != kind {
		return nil, "", fmt.Errorf("cells of kind %q: %w", kind, store.ErrBadCursor)
	}
	_, err = s.change(ctx, name, access{}, func(t *transaction) (err error) {
		var more bool
		page, more, err = t.cells.ofKind(kind, store.CellID(position), limit)
		if more && err == nil {
			next = formatCursor(kindCells, []byte(page[len(page)-1].ID))
		}
		return err
	})
	if err != nil {
		return nil, "", err
	}
	return page, next, nil
}

// Told implements store.Cells. It does not wait for the sync of what it returns: a commit comes
// behind that in the log.
func (s cellKeeper) Told(ctx context.Context, name store.Shard, q store.ToldQuery) (parcels []store.Parcel, page []store.Cell, err error) {
	err = s.glance(ctx, name, func(t *transaction) (err error) {
		if parcels, err = t.boxes.page(store.InBox, q.After, q.Limit); err != nil {
			return err
		}
		var ids []store.CellID
		parcels, ids = q.Cut(parcels)
		page, err = t.cells.page(ids)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return parcels, page, nil
}

// Parcels implements store.Cells.
func (s cellKeeper) Parcels(ctx context.Context, name store.Shard, box store.Box, after int64, limit int) (page []store.Parcel, err error) {
	_, err = s.change(ctx, name, access{}, func(t *transaction) (err error) {
		page, err = t.boxes.page(box, after, limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	return page, nil
}
