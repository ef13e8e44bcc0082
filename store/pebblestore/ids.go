package pebblestore

import "slices"

// ids are those that came in a call since its changes were last applied.
type ids struct {
	rising []string            // each above the ones before it
	seen   map[string]struct{} // the others
	newest uuid7               // the shard's, with those that isNew found new
	fresh  []uuid7             // those; they rise
}

// note adds an id.
func (x *ids) note(id string) {
	if x.rises(id) {
		x.rising = append(x.rising, id)
	} else {
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

// isNew reports whether the id of a task's key is newer than any of the shard, also of
// this call, and makes it the newest.
func (x *ids) isNew(key []byte) bool {
	id, ok := timedID(key)
	if !ok || id.compare(x.newest) <= 0 {
		return false
	}
	x.newest = id
	x.fresh = append(x.fresh, id)
	return true
}

// wasNew reports whether isNew found the id of a task's key new.
func (x *ids) wasNew(key []byte) bool {
	id, ok := timedID(key)
	if !ok {
		return false
	}
	_, found := slices.BinarySearchFunc(x.fresh, id, uuid7.compare)
	return found
}

// applied forgets the ids: whoever looks finds what was done to them.
func (x *ids) applied() {
	clear(x.seen)
	x.rising, x.fresh = x.rising[:0], x.fresh[:0]
}

// reset forgets everything, and keeps the memory that it took, but not too much of it.
func (x *ids) reset() {
	if len(x.seen) > maxKept {
		x.seen = make(map[string]struct{}) // clearing takes as long as it ever was
	}
	clear(x.rising)
	x.applied()
	x.newest = uuid7{}
}

// maxKept is how many ids a transaction that is used again may have room for.
const maxKept = 4096
