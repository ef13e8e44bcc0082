package memstore

import (
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
func (c *cells) put(p *store.Put) {
	cell := p.Cell
	old, there := c.byID[cell.ID]
	if there {
		c.remove(old)
	}
	if len(cell.Body) == 0 {
		return
	}
	cell.Version, cell.Body = p.Next(old.Version), slices.Clone(cell.Body)
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
		copied.put(&store.Put{Cell: cell, First: cell.Version})
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
