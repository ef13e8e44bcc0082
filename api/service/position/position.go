// Package position says how far the logs of a topic are known, and writes it down for
// watchers who come back with it.
package position

import (
	"encoding/binary"
	"hash/crc32"
	"maps"
	"slices"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// Set is how far the logs of a topic's shards are known, by shard.
type Set map[int]int64

const (
	cursorVersion = 1
	cursorEnd     = 4 // its checksum
)

// Cursor writes a set for whoever comes back with them:
//
//	1  version
//	4  hash of the topic's name
//	   number of shards, then the number and position of each
//	4  checksum
//
// The numbers of the middle are varints. What follows are pairs of shard and position
// that go before: see WatchTasksRequest.cursor.
func (p Set) Cursor(topic string) []byte {
	b := binary.BigEndian.AppendUint32([]byte{cursorVersion}, uint32(place.HashID(topic)))
	b = binary.AppendUvarint(b, uint64(len(p)))
	for _, n := range slices.Sorted(maps.Keys(p)) {
		b = Append(b, n, p[n])
	}
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// Append adds the position of a shard to a cursor, in the place of the one it has there.
func Append(b []byte, shard int, position int64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(shard)), uint64(position))
}

// Parse reads what Cursor wrote for the same topic, whose shards have numbers up to highest.
func Parse(topic string, cursor []byte, highest int) (Set, *problem.Error) {
	bad := BadCursor()
	if len(cursor) < 5+cursorEnd || cursor[0] != cursorVersion || binary.BigEndian.Uint32(cursor[1:]) != uint32(place.HashID(topic)) {
		return nil, bad
	}
	in := varints{b: cursor[5:]}
	p := make(Set)
	n := in.next()
	for ; n > 0 && !in.short; n-- {
		p.read(&in, highest)
	}
	body := len(cursor) - len(in.b)
	if in.short || len(in.b) < cursorEnd || binary.BigEndian.Uint32(in.b) != crc32.ChecksumIEEE(cursor[:body]) {
		return nil, bad
	}
	for in.b = in.b[cursorEnd:]; len(in.b) > 0; {
		if p.read(&in, highest); in.short {
			return nil, bad
		}
	}
	return p, nil
}

// BadCursor is the refusal of what is no cursor of the topic.
func BadCursor() *problem.Error {
	return problem.BadField("cursor", "BAD_CURSOR", "cursor is not one that a watch of this topic returned")
}

// Within reports whether the topic has had all of the shards: those below end.
func (p Set) Within(end int) bool {
	for n := range p {
		if n >= end {
			return false
		}
	}
	return true
}

// read reads the number and position of a shard.
func (p Set) read(in *varints, highest int) {
	n, position := in.next(), in.next()
	if n > uint64(highest) || position > 1<<62 {
		in.short = true
		return
	}
	p[int(n)] = int64(position)
}

// varints reads them off the front of b. Past the end it reads zeros and says so.
type varints struct {
	b     []byte
	short bool
}

func (in *varints) next() uint64 {
	v, n := binary.Uvarint(in.b)
	if n <= 0 {
		in.short = true
		return 0
	}
	in.b = in.b[n:]
	return v
}

// Shards are those that have a position, by number.
func (p Set) Shards(topic string) []store.Shard {
	shards := make([]store.Shard, 0, len(p))
	for _, n := range slices.Sorted(maps.Keys(p)) {
		shards = append(shards, store.Shard{Topic: topic, N: n})
	}
	return shards
}
