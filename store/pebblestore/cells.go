package pebblestore

import (
	"bytes"
	"math"

	"github.com/ddq-io/ddq/store"
)

// cells are the cells of a shard, and the indexes of those that wake and of those that are
// in lists. A commit changes each at most once: see committer.
type cells struct{ *batch }

// head reads what is stored of a cell before its body, without the changes.
func (c *cells) head(id store.CellID) (h cellHead, err error) {
	c.key = appendCellKey(c.key[:0], c.sh.number, id)
	err = c.dir.Read(c.key, func(b []byte) (err error) {
		h, _, err = decodeCell(b)
		return err
	})
	return h, err
}

// get reads a cell without the changes. Its version is 0 when there is none.
func (c *cells) get(id store.CellID) (cell store.Cell, err error) {
	cell.ID = id
	c.key = appendCellKey(c.key[:0], c.sh.number, id)
	err = c.dir.Read(c.key, func(b []byte) error {
		h, body, err := decodeCell(b)
		if err == nil {
			cell = h.cell(id, body)
		}
		return err
	})
	return cell, err
}

// put writes a cell over one that has a head, or deletes that.
func (c *cells) put(p *store.Put, old *cellHead) error {
	cell, next := &p.Cell, cellHead{}
	if version := p.Next(old.version); version != 0 {
		next = cellHead{version: version, wake: p.Wake, list: p.List, listed: p.Listed}
	}
	if old.version == 0 && next.version == 0 {
		return nil
	}
	if err := c.moveWake(cell.ID, old, &next); err != nil {
		return err
	}
	if err := c.moveListed(cell.ID, old, &next); err != nil {
		return err
	}
	switch {
	case next.version == 0:
		c.next.cells--
	case old.version == 0:
		c.next.cells++
	}
	c.next.newer = true
	c.key = appendCellKey(c.key[:0], c.sh.number, cell.ID)
	if next.version == 0 {
		return c.remove(c.key, true)
	}
	stored := *cell
	stored.Version = next.version
	c.value = appendCell(c.value[:0], &stored)
	return c.set(c.key, c.value)
}

// moveWake leaves an entry alone that stays, as it is set once.
func (c *cells) moveWake(id store.CellID, old, next *cellHead) error {
	if old.wake == next.wake {
		return nil
	}
	if old.wake != 0 {
		c.next.wakes--
		c.key = appendTimeKey(c.key[:0], c.sh.number, tableWakes, old.wake, string(id))
		if err := c.remove(c.key, false); err != nil {
			return err
		}
	}
	if next.wake == 0 {
		return nil
	}
	c.next.wakes++
	c.sh.firstWake = min(c.sh.firstWake, next.wake)
	c.key = appendTimeKey(c.key[:0], c.sh.number, tableWakes, next.wake, string(id))
	return c.set(c.key, nil)
}

func (c *cells) moveListed(id store.CellID, old, next *cellHead) error {
	if old.list == next.list && old.listed == next.listed {
		return nil
	}
	if old.list != "" {
		c.key = appendListKey(c.key[:0], c.sh.number, old.list, old.listed, id)
		if err := c.remove(c.key, false); err != nil {
			return err
		}
	}
	if next.list == "" {
		return nil
	}
	c.key = appendListKey(c.key[:0], c.sh.number, next.list, next.listed, id)
	return c.set(c.key, nil)
}

// page reads cells until they have filled an answer.
func (c *cells) page(ids []store.CellID) (page []store.Cell, err error) {
	var bodies store.Bodies
	page = make([]store.Cell, 0, len(ids))
	for _, id := range ids {
		if bodies.Full() {
			break
		}
		cell, err := c.get(id)
		if err != nil {
			return nil, err
		}
		bodies += store.Bodies(len(cell.Body))
		page = append(page, cell)
	}
	return page, nil
}

// wakes reads a table whose keys are a prefix, a time and the id of a cell: those behind the
// position of an encoded time and an id.
func (c *cells) wakes(prefix, at []byte, id store.CellID, upper []byte, limit int) (page []store.Wake, err error) {
	if limit <= 0 {
		return nil, nil
	}
	lower := append(append(bytes.Clone(prefix), at...), id...)
	if id != "" {
		lower = append(lower, 0)
	}
	err = c.dir.Scan(lower, upper, func(key, _ []byte) (bool, error) {
		if rest := key[len(prefix):]; len(rest) > 8 {
			page = append(page, store.Wake{At: millisAt(rest), ID: store.CellID(rest[8:])})
		}
		return len(page) < limit, nil
	})
	return page, err
}

// firstWakes reads the cells that wake first, up to a moment. It begins at the first one
// there can be, as the deleted ones before it are costly to pass.
func (c *cells) firstWakes(to store.Millis, limit int) (page []store.Wake, err error) {
	if c.sh.firstWake > to {
		return nil, nil
	}
	prefix, upper := appendPrefix(nil, c.sh.number, tableWakes), afterMillis(c.sh.number, tableWakes, to)
	page, err = c.wakes(prefix, appendMillis(nil, c.sh.firstWake), "", upper, limit)
	switch {
	case err != nil || limit <= 0:
		return nil, err
	case len(page) > 0:
		c.sh.firstWake = page[0].At
	case to < math.MaxInt64:
		c.sh.firstWake = to + 1
	}
	return page, nil
}

// listed reads the cells of a list behind a position.
func (c *cells) listed(list string, after store.Wake, limit int) ([]store.Cell, error) {
	prefix := appendList(nil, c.sh.number, list)
	var at []byte
	if after != (store.Wake{}) {
		at = appendMillis(nil, after.At)
	}
	wakes, err := c.wakes(prefix, at, after.ID, append(bytes.Clone(prefix), behindLane...), limit)
	if err != nil {
		return nil, err
	}
	ids := make([]store.CellID, len(wakes))
	for i, w := range wakes {
		ids[i] = w.ID
	}
	return c.page(ids)
}

// ofKind reads the cells of a kind behind an id, and says whether there are more.
func (c *cells) ofKind(kind byte, after store.CellID, limit int) (page []store.Cell, more bool, err error) {
	if limit <= 0 {
		return nil, false, nil
	}
	start := store.CellID([]byte{kind})
	if after != "" {
		start = after + "\x00"
	}
	var bodies store.Bodies
	lower, upper := appendCellKey(nil, c.sh.number, start), appendPrefix(nil, c.sh.number, tableCells+1)
	err = c.dir.Scan(lower, upper, func(key, value []byte) (bool, error) {
		if key[prefixLen] != kind {
			return false, nil
		}
		if more = len(page) == limit || bodies.Full(); more {
			return false, nil
		}
		h, body, err := decodeCell(value)
		if err != nil {
			return false, err
		}
		bodies += store.Bodies(len(body))
		page = append(page, h.cell(store.CellID(key[prefixLen:]), body))
		return true, nil
	})
	return page, more, err
}
