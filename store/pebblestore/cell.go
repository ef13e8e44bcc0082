package pebblestore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/ddq-io/ddq/store"
)

// cellHead is what is stored of a cell before its body.
type cellHead struct {
	version int64 // 0: there is no cell
	wake    store.Millis
	list    string
	listed  store.Millis
}

const cellFormat = 1

// appendCell appends the stored form of a cell.
func appendCell(b []byte, c *store.Cell) []byte {
	b = append(b, cellFormat)
	b = binary.AppendUvarint(b, uint64(c.Version))
	b = binary.AppendVarint(b, int64(c.Wake))
	b = binary.AppendUvarint(b, uint64(len(c.List)))
	b = append(b, c.List...)
	b = binary.AppendVarint(b, int64(c.Listed))
	return append(b, c.Body...)
}

// decodeCell reads a cell. The body is a part of b.
func decodeCell(b []byte) (h cellHead, body []byte, err error) {
	in := input{b: b}
	if format := in.byte(); format != cellFormat {
		return h, nil, fmt.Errorf("decode cell: unknown format %d", format)
	}
	h.version = int64(in.uvarint())
	h.wake = store.Millis(in.varint())
	h.list = string(in.bytes(in.uvarint()))
	h.listed = store.Millis(in.varint())
	if in.short || h.version <= 0 {
		return cellHead{}, nil, errors.New("decode cell: malformed")
	}
	return h, in.b, nil
}

// cell is the cell of an id with a head and a body, which is copied.
func (h *cellHead) cell(id store.CellID, body []byte) store.Cell {
	return store.Cell{ID: id, Version: h.version, Wake: h.wake, List: h.list, Listed: h.listed, Body: bytes.Clone(body)}
}

func appendCellKey(b []byte, number uint32, id store.CellID) []byte {
	return append(appendPrefix(b, number, tableCells), id...)
}

// maxList is how long the name of a list may be.
const maxList = math.MaxUint8

// appendList appends what the keys of a list begin with: its length in a byte, and its name.
func appendList(b []byte, number uint32, list string) []byte {
	return append(append(appendPrefix(b, number, tableLists), byte(len(list))), list...)
}

func appendListKey(b []byte, number uint32, list string, at store.Millis, id store.CellID) []byte {
	return append(appendMillis(appendList(b, number, list), at), id...)
}

// checkPuts refuses cells that have no key here, and a commit that puts one twice: it would
// be in the index of wakes twice.
func checkPuts(commits []store.Commit) error {
	for i := range commits {
		puts := commits[i].Puts
		for k := range puts {
			p := &puts[k]
			switch {
			case len(p.ID) == 0:
				return errors.New("a cell without an id")
			case len(p.List) > maxList:
				return fmt.Errorf("cell %q: the name of its list has %d bytes, at most %d", p.ID, len(p.List), maxList)
			case slices.ContainsFunc(puts[:k], func(before store.Put) bool { return before.ID == p.ID }):
				return fmt.Errorf("cell %q is put twice by one commit", p.ID)
			}
		}
	}
	return nil
}
