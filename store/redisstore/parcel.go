package redisstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore/conn"
)

// A box is a stream, whose entries have the number of their last parcel:
//
//	8  when they came, ms
//	4  how many parcels
//	   parcels
//
// Integers are big-endian. A parcel is
//
//	1  what happened to a task, or 0: it was sent; and 128 when the ack or the nack says something
//	2  length of the cell's id, and
//	     id of the cell
//
// and of one that was sent
//
//	2  length of the topic, and
//	     topic
//	4  length of the body, and
//	     body
//
// of another one
//
//	1  reason
//	4  attempts
//	8  due ms
//	2  length of the task's id, 2 of who had it, 4 of the error, 4 of the result, and
//	     these; the id in its stored form, and who as in a running record (see hold)
//	4  length of what that says, and that, when it says something
//
// Scripts write the latter, in lua/parcels.lua.

// parcelSays marks a parcel with what an ack or a nack says.
const parcelSays = 128

var errParcel = errors.New("malformed entry of a box")

// appendParcel appends a parcel that is sent.
func appendParcel(b []byte, p *store.Parcel) []byte {
	b = append(b, 0)
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(p.To))), p.To...)
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(p.Topic))), p.Topic...)
	return append(binary.BigEndian.AppendUint32(b, uint32(len(p.Body))), p.Body...)
}

// wire is what is left to read of an entry; of too little it gives nothing, and is short
// from then on.
type wire struct {
	b     []byte
	short bool
}

func (w *wire) bytes(n int) []byte {
	if w.short || n < 0 || n > len(w.b) {
		w.short = true
		return nil
	}
	part := w.b[:n]
	w.b = w.b[n:]
	return part
}

func (w *wire) uint(size int) (n uint64) {
	for _, c := range w.bytes(size) {
		n = n<<8 | uint64(c)
	}
	return n
}

// text is bytes behind their length.
func (w *wire) text(size int) string { return string(w.bytes(int(w.uint(size)))) }

// decodeEntry reads the parcels of an entry, by its id.
func decodeEntry(id, packed string) ([]store.Parcel, error) {
	last, _, _ := strings.Cut(id, "-")
	number, err := strconv.ParseInt(last, 10, 64)
	w := &wire{b: []byte(packed)}
	at, n := store.Millis(w.uint(8)), int64(w.uint(4))
	if err != nil || n > int64(len(packed)) {
		return nil, errParcel
	}
	parcels := make([]store.Parcel, 0, n)
	for i := range n {
		p := w.parcel()
		p.Number, p.At = number-n+1+i, at
		parcels = append(parcels, p)
	}
	if w.short || len(w.b) > 0 {
		return nil, fmt.Errorf("%w %s", errParcel, id)
	}
	return parcels, nil
}

func (w *wire) parcel() (p store.Parcel) {
	kind := w.uint(1)
	p.To = store.CellID(w.text(2))
	if kind != 0 {
		p.Ended = w.ended(store.ChangeKind(kind &^ parcelSays))
		if kind&parcelSays != 0 {
			p.Ended.Say = w.bytes(int(w.uint(4)))
		}
		return p
	}
	p.Topic = w.text(2)
	p.Body = w.bytes(int(w.uint(4)))
	return p
}

func (w *wire) ended(kind store.ChangeKind) *store.Ended {
	e := &store.Ended{Kind: kind, Reason: store.Reason(w.uint(1)), Attempt: int(w.uint(4)), Due: store.Millis(w.uint(8))}
	id, who, why, result := int(w.uint(2)), int(w.uint(2)), int(w.uint(4)), int(w.uint(4))
	var by hold
	e.ID = parseID(string(w.bytes(id)))
	if by.who(string(w.bytes(who))); who > 0 {
		e.Worker, e.Started = by.Worker, by.Started
	}
	e.Error = string(w.bytes(why))
	if result > 0 {
		e.Result = w.bytes(result)
	}
	return e
}

// Told implements store.Cells. These are two calls: which cells to read is in the parcels.
func (s *cells) Told(ctx context.Context, shard store.Shard, q store.ToldQuery) ([]store.Parcel, []store.Cell, error) {
	parcels, err := s.Parcels(ctx, shard, store.InBox, q.After, q.Limit)
	if err != nil {
		return nil, nil, err
	}
	parcels, ids := q.Cut(parcels)
	page, err := s.Cells(ctx, shard, ids)
	if err != nil {
		return nil, nil, err
	}
	return parcels, page, nil
}

// Parcels implements store.Cells.
func (s *cells) Parcels(ctx context.Context, shard store.Shard, which store.Box, after int64, limit int) ([]store.Parcel, error) {
	if err := s.enter(ctx); err != nil || limit <= 0 {
		return nil, err
	}
	key := inKey
	if which == store.OutBox {
		key = outKey
	}
	for {
		v, err := s.conn.Run(ctx, s.lua.parcelsOf, s.keys(shard).pick(ownerKey, key), []any{max(after, 0), limit, bit(which == store.InBox)})
		if err != nil {
			return nil, conn.ReadError("parcels", err)
		}
		entries := list(at(list(v), 1))
		page := s.readEntries(shard, entries, number(at(list(v), 0)), limit)
		if len(page) > 0 || len(entries) == 0 {
			return page, nil // only an empty page is the end, not one of entries that cannot be read
		}
		last, _, _ := strings.Cut(text(at(list(entries[len(entries)-1]), 0)), "-")
		if after, err = strconv.ParseInt(last, 10, 64); err != nil {
			return nil, conn.ReadError("parcels", conn.ErrReply)
		}
	}
}

// readEntries reads the parcels of entries behind a number, as many as an answer takes.
func (s *cells) readEntries(shard store.Shard, entries []any, after int64, limit int) (page []store.Parcel) {
	var bodies store.Bodies
	for _, e := range entries {
		parcels, err := decodeEntry(text(at(list(e), 0)), text(at(list(at(list(e), 1)), 1)))
		if err != nil {
			s.log.Error("an entry of a box cannot be read", "topic", shard.Topic, "shard", shard.N, "err", err)
		}
		for _, p := range parcels {
			if p.Number <= after || len(page) == limit || bodies.Full() {
				continue
			}
			bodies += store.Bodies(p.Size())
			page = append(page, p)
		}
	}
	return page
}
