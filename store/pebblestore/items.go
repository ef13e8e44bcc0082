package pebblestore

import "slices"

// item begins the next item of a call. When its id came before, what was collected
// is applied first, so that the item finds it done.
func (t *turn) item(id string) error {
	if t.came(id) {
		if err := t.repeat(); err != nil {
			return err
		}
	}
	if t.rises(id) {
		t.rising = append(t.rising, id)
	} else {
		t.seen[id] = struct{}{}
	}
	return nil
}

// came reports whether an id came before in the call, since the last apply. Ids
// mostly come in order, and one above all before it is new without a look.
func (t *turn) came(id string) bool {
	if t.rises(id) {
		return false
	}
	if _, again := t.seen[id]; again {
		return true
	}
	_, again := slices.BinarySearch(t.rising, id)
	return again
}

// rises reports whether an id is above all of rising, and so of seen.
func (t *turn) rises(id string) bool {
	return len(t.rising) == 0 || id > t.rising[len(t.rising)-1]
}

// repeat applies what was collected, because an id comes again.
func (t *turn) repeat() error {
	if err := t.apply(); err != nil {
		return err
	}
	clear(t.seen)
	t.rising, t.fresh = t.rising[:0], t.fresh[:0]
	return nil
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
