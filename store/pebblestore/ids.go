package pebblestore

import "slices"

// ids are those of what a call changed since its changes were last applied.
type ids struct {
	rising []string            // each above the ones before it
	seen   map[string]struct{} // the others; nil: none yet
}

// note adds an id.
func (x *ids) note(id string) {
	switch {
	case x.rises(id):
		x.rising = append(x.rising, id)
	case x.seen == nil:
		x.seen = map[string]struct{}{id: {}}
	default:
		x.seen[id] = struct{}{}
	}
}

// came reports whether an id was noted. Ids mostly come in order, and one above all before
// it is new without a look.
func (x *ids) came(id string) bool {
	if x.rises(id) {
		return false
	}
	if _, again := x.seen[id]; again {
		return true
	}
	_, again := slices.BinarySearch(x.rising, id)
	return again
}

// rises reports whether an id is above all of rising, and so of seen.
func (x *ids) rises(id string) bool {
	return len(x.rising) == 0 || id > x.rising[len(x.rising)-1]
}

// clear forgets the ids.
func (x *ids) clear() {
	clear(x.seen)
	x.rising = x.rising[:0]
}

// reset forgets them, and keeps the memory that they took, but not too much of it.
func (x *ids) reset() {
	if len(x.seen) > maxKept {
		x.seen = nil // clearing takes as long as it ever was
	}
	clear(x.rising)
	x.clear()
}

// maxKept is how many ids a transaction that is used again may have room for.
const maxKept = 4096

// taskIDs are ids of tasks. Of those of a shard the newest is known.
type taskIDs struct {
	ids
	newest uuid7   // the shard's, with those that isNew found new
	fresh  []uuid7 // those; they rise, and are not noted
}

// above reports whether the id of a task's key is newer than any of the shard, also of
// this call.
func (x *taskIDs) above(key []byte) bool {
	id, ok := timedID(key)
	return ok && id.compare(x.newest) > 0
}

// isNew is above, and makes the id the newest.
func (x *taskIDs) isNew(key []byte) bool {
	id, ok := timedID(key)
	if !ok || id.compare(x.newest) <= 0 {
		return false
	}
	x.newest = id
	x.fresh = append(x.fresh, id)
	return true
}

// wasNew reports whether isNew found the id of a task's key new.
func (x *taskIDs) wasNew(key []byte) bool {
	id, ok := timedID(key)
	if !ok {
		return false
	}
	_, found := slices.BinarySearchFunc(x.fresh, id, uuid7.compare)
	return found
}

// clear forgets the ids: whoever looks finds what was done to them.
func (x *taskIDs) clear() {
	x.ids.clear()
	x.fresh = x.fresh[:0]
}

func (x *taskIDs) reset() {
	x.ids.reset()
	x.newest, x.fresh = uuid7{}, x.fresh[:0]
}
