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
type Set map[int]At

// At is a position, and when the change there was made: a server that takes over from one whose last changes it
// does not have gives their positions to others.
type At struct {
	Position int64
	Made     int64 // microseconds, Unix; 0: not known
}

// Behind is the position of a change.
func Behind(c *store.Change) At { return At{c.Position, c.At.UnixMicro()} }

const (
	withoutMoments = 1 // the version of a cursor that any node reads
	withMoments    = 2
	cursorEnd      = 4 // its checksum
)

// Cursor writes a set for whoever comes back with them:
//
//	1  version
//	4  hash of the topic's name
//	   number of shards, then the number and position of each, and when its change was made
//	4  checksum
//
// The numbers of the middle are varints. What follows are pairs of shard and position
// that go before: see WatchTasksRequest.cursor. Nodes of before do not read moments.
func (p Set) Cursor(topic string, moments bool) []byte {
	version := byte(withoutMoments)
	if moments {
		version = withMoments
	}
	b := binary.BigEndian.AppendUint32([]byte{version}, uint32(place.HashID(topic)))
	b = binary.AppendUvarint(b, uint64(len(p)))
	for _, n := range slices.Sorted(maps.Keys(p)) {
		if b = Append(b, n, p[n].Position); moments {
			b = binary.AppendUvarint(b, uint64(p[n].Made))
		}
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
	if len(cursor) < 5+cursorEnd || cursor[0] != withoutMoments && cursor[0] != withMoments || binary.BigEndian.Uint32(cursor[1:]) != uint32(place.HashID(topic)) {
		return nil, bad
	}
	in := varints{b: cursor[5:]}
	p := make(Set)
	n := in.next()
	for ; n > 0 && !in.short; n-- {
		p.read(&in, highest, cursor[0] == withMoments)
	}
	body := len(cursor) - len(in.b)
	if in.short || len(in.b) < cursorEnd || binary.BigEndian.Uint32(in.b) != crc32.ChecksumIEEE(cursor[:body]) {
		return nil, bad
	}
	for in.b = in.b[cursorEnd:]; len(in.b) > 0; {
		if p.read(&in, highest, false); in.short {
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

// read reads the number and position of a shard, and its moment.
func (p Set) read(in *varints, highest int, moment bool) {
	n, position, made := in.next(), in.next(), uint64(0)
	if moment {
		made = in.next()
	}
	if n > uint64(highest) || position > 1<<62 || made > 1<<62 {
		in.short = true
		return
	}
	p[int(n)] = At{int64(position), int64(made)}
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
