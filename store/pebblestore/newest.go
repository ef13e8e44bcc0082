package pebblestore

import (
	"encoding/binary"
	"slices"
)

// uuid7 is an id that is a UUID of version 7, as two numbers that sort as it does.
type uuid7 struct{ hi, lo uint64 }

// unknown is the newest id of a shard of which it is not known.
var unknown = uuid7{1<<64 - 1, 1<<64 - 1}

func (u uuid7) compare(v uuid7) int {
	switch {
	case u == v:
		return 0
	case u.hi < v.hi || u.hi == v.hi && u.lo < v.lo:
		return -1
	}
	return 1
}

// timedID reads the id of a task's key when it is a UUID of version 7. These begin
// with the time at which they were made, so most that come are newer than all that
// the shard has had, and need not be looked for. (RFC 9562, section 5.7)
func timedID(key []byte) (uuid7, bool) {
	id := key[prefixLen:]
	if id[0] != idUUID || id[7]>>4 != 7 {
		return uuid7{}, false
	}
	return uuid7{binary.BigEndian.Uint64(id[1:]), binary.BigEndian.Uint64(id[9:])}, true
}

// isNew reports whether the id under t.key is newer than any of the shard, also of
// this turn, and makes it the newest.
func (t *turn) isNew() bool {
	id, ok := timedID(t.key)
	if !ok || id.compare(t.newest) <= 0 {
		return false
	}
	t.newest = id
	t.fresh = append(t.fresh, id)
	return true
}

// again reports whether the id under t.key is one that isNew found new since the
// last apply.
func (t *turn) again() bool {
	id, ok := timedID(t.key)
	if !ok {
		return false
	}
	_, found := slices.BinarySearchFunc(t.fresh, id, uuid7.compare) // they rise
	return found
}
