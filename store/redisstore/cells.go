package redisstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore/conn"
)

// What is stored of a cell, under its id in one of two hashes, is
//
//	8  version
//	8  when it wakes, ms
//	1  length of the list's name
//	   list
//	8  listed ms, so that they sort as bytes
//	   body
//
// A member of the set of lists is what is stored of the list, from its length to listed, and
// the id. Scripts know this too, in lua/change_commits.lua.

// appendCell appends what is stored of a cell when it is made; nothing for one without
// a body, which is deleted.
func appendCell(b []byte, p *store.Put) []byte {
	c := &p.Cell
	if len(c.Body) == 0 {
		return b
	}
	b = binary.BigEndian.AppendUint64(b, uint64(p.Next(0)))
	b = binary.BigEndian.AppendUint64(b, uint64(c.Wake))
	b = appendList(b, c.List)
	b = appendListed(b, c.Listed)
	return append(b, c.Body...)
}

// checkCell refuses what cannot be stored.
func checkCell(c *store.Cell) error {
	switch {
	case c.ID == "":
		return errors.New("a cell without an id")
	case len(c.List) > math.MaxUint8:
		return fmt.Errorf("cell %q: the name of its list has %d bytes, at most %d", c.ID, len(c.List), math.MaxUint8)
	case c.Wake > maxScore || c.Wake < -maxScore:
		return fmt.Errorf("cell %q: time to wake %d is out of range", c.ID, c.Wake)
	}
	return nil
}

func appendList(b []byte, list string) []byte {
	return append(append(b, byte(len(list))), list...)
}

func appendListed(b []byte, at store.Millis) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(at)^1<<63)
}

const cellSize = 25 // without the list and the body

// decodeCell reads what is stored of a cell: nothing when there is none. One that cannot be
// read is taken for none, as in the scripts.
func decodeCell(id store.CellID, s string) store.Cell {
	c := store.Cell{ID: id}
	if len(s) < cellSize || len(s) < cellSize+int(s[16]) {
		return c
	}
	b := []byte(s)
	end := 17 + int(s[16])
	c.Version = int64(binary.BigEndian.Uint64(b))
	c.Wake = store.Millis(binary.BigEndian.Uint64(b[8:]))
	c.List = s[17:end]
	c.Listed = store.Millis(binary.BigEndian.Uint64(b[end:]) ^ 1<<63)
	c.Body = b[end+8:]
	return c
}

// isPart reports whether a cell is a part of others.
func isPart(id store.CellID) bool { return id != "" && id.Kind() >= 'A' && id.Kind() <= 'Z' }

// hashOf is the key of the hash that cells of a kind are in.
func (k *shardKeys) hashOf(id store.CellID) string {
	if isPart(id) {
		return k[partsKey]
	}
	return k[cellsKey]
}

// Cells implements store.Cells.
func (s *cells) Cells(ctx context.Context, shard store.Shard, ids []store.CellID) ([]store.Cell, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	keys := s.keys(shard)
	var found []store.Cell
	var bodies store.Bodies
	for len(found) < len(ids) && !bodies.Full() {
		rest := ids[len(found):]
		n := 1 // those that one script reads
		for n < min(len(rest), maxItems) && isPart(rest[n]) == isPart(rest[0]) {
			n++
		}
		argv := make([]any, n)
		for i, id := range rest[:n] {
			argv[i] = string(id)
		}
		v, err := s.conn.Run(ctx, s.lua.cells, []string{keys.hashOf(rest[0])}, argv)
		if err != nil {
			return nil, conn.ReadError("cells", err)
		}
		if found, err = appendCells(found, &bodies, rest, list(v)); err != nil {
			return nil, conn.ReadError("cells", err)
		}
	}
	return found, nil
}

// appendCells adds cells as they are stored, until the answer is full.
func appendCells(all []store.Cell, bodies *store.Bodies, ids []store.CellID, stored []any) ([]store.Cell, error) {
	if len(stored) == 0 || len(stored) > len(ids) {
		return nil, conn.ErrReply
	}
	for i, v := range stored {
		if bodies.Full() {
			break
		}
		c := decodeCell(ids[i], text(v))
		*bodies += store.Bodies(len(c.Body))
		all = append(all, c)
	}
	return all, nil
}

// Server implements store.Cells.
func (s *cells) Server(ctx context.Context, shard store.Shard) uint64 {
	return s.conn.Server(ctx, s.keys(shard)[ownerKey])
}

// Wakes implements store.Cells.
func (s *cells) Wakes(ctx context.Context, shard store.Shard, q store.WakeQuery) (store.Stamp, []store.Wake, error) {
	if err := s.enter(ctx); err != nil {
		return store.Stamp{}, nil, err
	}
	a := newArgs(4, 64)
	if q.After == (store.Wake{}) {
		a.str("")
	} else {
		a.int(int64(q.After.At))
	}
	a.str(string(q.After.ID))
	a.int(int64(min(q.To, maxScore)))
	a.int(int64(max(q.Limit, 0)))
	server := s.Server(ctx, shard)
	v, err := s.conn.Run(ctx, s.lua.wakes, s.keys(shard).pick(ownerKey, wakesKey), a.values())
	if err != nil {
		return store.Stamp{}, nil, conn.ReadError("wakes", err)
	}
	r, err := parseReply(v, 1)
	if err != nil {
		return store.Stamp{}, nil, conn.ReadError("wakes", err)
	}
	var wakes []store.Wake
	for flat := texts(list(r.more[0])); len(flat) >= 2; flat = flat[2:] {
		at, err := parseMillis(flat[1])
		if err != nil {
			return store.Stamp{}, nil, conn.ReadError("wakes", err)
		}
		wakes = append(wakes, store.Wake{At: at, ID: store.CellID(flat[0])})
	}
	r.Server = server
	return r.Stamp, wakes, nil
}

// WakeHistogram implements store.Cells.
func (s *cells) WakeHistogram(ctx context.Context, shard store.Shard, bounds []store.Millis) (store.Stamp, []int64, error) {
	return s.histogram(ctx, "wake histogram", s.keys(shard).pick(ownerKey, wakesKey), bounds)
}

// Listed implements store.Cells.
func (s *cells) Listed(ctx context.Context, shard store.Shard, name string, after store.Wake, limit int) ([]store.Cell, error) {
	if err := s.enter(ctx); err != nil || len(name) > math.MaxUint8 {
		return nil, err
	}
	from := []byte("[")
	if after != (store.Wake{}) {
		from = append(appendListed([]byte("("), after.At), after.ID...)
	}
	var found []store.Cell
	var bodies store.Bodies
	for len(found) < limit && !bodies.Full() {
		a := newArgs(3, 64)
		a.buf = appendList(a.buf, name)
		a.end()
		a.buf = append(a.buf, from...)
		a.end()
		want := min(limit-len(found), maxItems)
		a.int(int64(want))
		v, err := s.conn.Run(ctx, s.lua.listed, s.keys(shard).pick(listsKey, cellsKey, partsKey), a.values())
		if err != nil {
			return nil, conn.ReadError("listed", err)
		}
		positions := list(at(list(v), 0))
		if len(positions) == 0 {
			break
		}
		ids := make([]store.CellID, len(positions))
		for i, p := range positions {
			ids[i] = store.CellID(text(p)[min(8, len(text(p))):])
		}
		page, err := appendCells(nil, &bodies, ids, list(at(list(v), 1)))
		if err != nil {
			return nil, conn.ReadError("listed", err)
		}
		for i, c := range page {
			position := text(positions[i])
			if c.List == name && position == string(append(appendListed(nil, c.Listed), c.ID...)) { // Sweep removes the others
				found = append(found, c)
			}
			from = append([]byte("("), position...)
		}
		if len(page) == len(ids) && len(ids) < want {
			break
		}
	}
	return found, nil
}

// CellPage implements store.Cells. Its cursor is the kind and the cursor of Redis in the hash.
func (s *cells) CellPage(ctx context.Context, shard store.Shard, kind byte, cursor string, limit int) ([]store.Cell, string, error) {
	if err := s.enter(ctx); err != nil {
		return nil, "", err
	}
	if cursor != "" && cursor[0] != kind {
		return nil, "", fmt.Errorf("cells of kind %q: %w", kind, store.ErrBadCursor)
	}
	key := s.keys(shard).hashOf(store.CellID(kind))
	fields, next, err := s.scanBytes(ctx, key, cursor[min(1, len(cursor)):], limit, true, `\`+string(rune(kind))+"*")
	if err != nil {
		return nil, "", err
	}
	var page []store.Cell
	for _, f := range fields {
		if c := decodeCell(store.CellID(f.name), f.value); c.Version > 0 {
			page = append(page, c)
		}
	}
	if next != "" {
		next = string(rune(kind)) + next
	}
	return page, next, nil
}
