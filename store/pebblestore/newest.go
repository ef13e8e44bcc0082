package pebblestore

import (
	"slices"
)

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
