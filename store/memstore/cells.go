package memstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/ddq-io/ddq/store"
)

// cells are the cells of a shard.
//
// Invariants:
//   - a cell with a time to wake, and only such a one, is in wakes
//   - a cell with a list, and only such a one, is in that list
type cells struct {
	byID  map[store.CellID]store.Cell
	wakes *index
	lists map[string]*index
}

func newCells() *cells {
	return &cells{byID: make(map[store.CellID]store.Cell), wakes: newIndex(), lists: make(map[string]*index)}
}

// put replaces or deletes a cell, and counts its version up.
func (c *cells) put(cell store.Cell) {
	old, there := c.byID[cell.ID]
	if there {
		c.remove(old)
	}
	if len(cell.Body) == 0 {
		return
	}
	cell.Version, cell.Body = old.Version+1, slices.Clone(cell.Body)
	c.byID[cell.ID] = cell
	if cell.Wake != 0 {
		c.wakes.insert(wakeEntry(cell.Wake, cell.ID))
	}
	if cell.List != "" {
		if c.lists[cell.List] == nil {
			c.lists[cell.List] = newIndex()
		}
		c.lists[cell.List].insert(wakeEntry(cell.Listed, cell.ID))
	}
}

func (c *cells) remove(cell store.Cell) {
	delete(c.byID, cell.ID)
	if cell.Wake != 0 {
		c.wakes.remove(wakeEntry(cell.Wake, cell.ID))
	}
	if list := c.lists[cell.List]; cell.List != "" {
		list.remove(wakeEntry(cell.Listed, cell.ID))
		if list.len() == 0 {
			delete(c.lists, cell.List)
		}
	}
}

func (c *cells) get(id store.CellID) store.Cell {
	cell := c.byID[id]
	cell.ID, cell.Body = id, slices.Clone(cell.Body)
	return cell
}

func (c *cells) clone() *cells {
	copied := newCells()
	for _, cell := range c.byID {
		version := cell.Version
		copied.put(cell)
		cell.Version = version
		copied.byID[cell.ID] = cell
	}
	return copied
}

// page returns cells in the order of ids until they have filled an answer.
func (c *cells) page(ids []store.CellID) []store.Cell {
	var page []store.Cell
	var bodies store.Bodies
	for _, id := range ids {
		if bodies.Full() {
			break
		}
		cell := c.get(id)
		bodies += store.Bodies(len(cell.Body))
		page = append(page, cell)
	}
	return page
}

// Cells implements store.Cells.
func (m *Store) Cells(ctx context.Context, s store.Shard, ids []store.CellID) ([]store.Cell, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	return m.shard(s).cells.page(ids), nil
}

// Wakes implements store.Cells.
func (m *Store) Wakes(ctx context.Context, s store.Shard, q store.WakeQuery) (store.Stamp, []store.Wake, error) {
	if err := m.enter(ctx); err != nil {
		return store.Stamp{}, nil, err
	}
	defer m.mu.Unlock()
	sh := m.shard(s)
	return sh.stamp(m.now()), wakesIn(sh.cells.wakes, q.After, q.To, q.Limit), nil
}

// WakeHistogram implements store.Cells.
func (m *Store) WakeHistogram(ctx context.Context, s store.Shard, bounds []store.Millis) (store.Stamp, []int64, error) {
	if err := m.enter(ctx); err != nil {
		return store.Stamp{}, nil, err
	}
	defer m.mu.Unlock()
	sh := m.shard(s)
	counts := make([]int64, len(bounds)+1)
	for e := range sh.cells.wakes.after(store.Entry{}) {
		i, exact := slices.BinarySearch(bounds, e.Due)
		if exact {
			i++
		}
		counts[i]++
	}
	return sh.stamp(m.now()), counts, nil
}

// Listed implements store.Cells.
func (m *Store) Listed(ctx context.Context, s store.Shard, list string, after store.Wake, limit int) ([]store.Cell, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	c := m.shard(s).cells
	if c.lists[list] == nil {
		return nil, nil
	}
	var ids []store.CellID
	for _, w := range wakesIn(c.lists[list], after, store.MaxDue, limit) {
		ids = append(ids, w.ID)
	}
	return c.page(ids), nil
}

// CellPage implements store.Cells. Its cursor is the id of the last cell of the page before.
func (m *Store) CellPage(ctx context.Context, s store.Shard, kind byte, cursor string, limit int) ([]store.Cell, string, error) {
	if err := m.enter(ctx); err != nil {
		return nil, "", err
	}
	defer m.mu.Unlock()
	if cursor != "" && cursor[0] != kind {
		return nil, "", fmt.Errorf("cells of kind %q: %w", kind, store.ErrBadCursor)
	}
	c := m.shard(s).cells
	var ids []store.CellID
	for id := range c.byID {
		if id.Kind() == kind && id > store.CellID(cursor) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	page := c.page(ids[:min(limit, len(ids))])
	if len(page) == len(ids) {
		return page, "", nil
	}
	return page, string(page[len(page)-1].ID), nil
}

// wakeEntry is where a cell stands in an index.
func wakeEntry(at store.Millis, id store.CellID) store.Entry {
	return store.Entry{Due: at, ID: string(id)}
}

// wakesIn returns the cells of an index behind a position, all of them behind the zero one,
// up to a moment.
func wakesIn(x *index, after store.Wake, to store.Millis, limit int) (page []store.Wake) {
	for e := range x.after(wakeEntry(after.At, after.ID)) {
		if e.Due > to || len(page) >= limit {
			break
		}
		page = append(page, store.Wake{At: e.Due, ID: store.CellID(e.ID)})
	}
	return page
}
