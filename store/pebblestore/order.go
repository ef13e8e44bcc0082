package pebblestore

import (
	"bytes"
	"context"

	"github.com/cockroachdb/pebble/v2"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
)

// A task that is held is the first of its line, wherever its entry is: that is known from
// the holds. Once it was held and is pending again its entry says so, and is moved.

// lineUp puts a task with these encoded traits among those of its ordering key, if it
// has one.
func (t *turn) lineUp(traits []byte, at store.Millis, id string) error {
	key := record.Ordering(traits)
	if key == "" {
		return nil
	}
	return t.index(appendOrderKey(nil, t.sh.number, key, at, id), nil)
}

// stepOut takes it out again.
func (t *turn) stepOut(traits []byte, at store.Millis, id string) error {
	key := record.Ordering(traits)
	if key == "" {
		return nil
	}
	return t.remove(appendOrderKey(nil, t.sh.number, key, at, id), true)
}

// leaveLine takes a held task out of its line, if it has one.
func (t *turn) leaveLine(h *hold) error {
	if h.place == nil {
		return nil
	}
	return t.remove(appendOrderKey(nil, t.sh.number, h.place.key, h.place.at, h.id), true)
}

// stayFirst makes a task the first of its line, if it has one, that is held no more.
func (t *turn) stayFirst(h *hold) error {
	if h.place == nil || h.place.at == wasHeld {
		return nil
	}
	if err := t.leaveLine(h); err != nil {
		return err
	}
	return t.index(appendOrderKey(nil, t.sh.number, h.place.key, wasHeld, h.id), nil)
}

// walk calls see for the entries of a key's line, in their order, until it returns
// false. Those that point to no unfinished task, which Sweep removes, are among them.
func (t *turn) walk(key string, see func(id string) (bool, error)) (err error) {
	if t.line == nil { // one for all keys of a call: making it costs more than the look
		lower, upper := appendPrefix(nil, t.sh.number, tableOrder), appendPrefix(nil, t.sh.number, tableOrder+1)
		if t.line, err = t.dir.DB().NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper}); err != nil {
			return t.dir.ReadError(err)
		}
	}
	line := appendOrder(nil, t.sh.number, key)
	for ok := t.line.SeekGE(line); ok && bytes.HasPrefix(t.line.Key(), line); ok = t.line.Next() {
		_, _, id, ok := decodeOrderKey(t.line.Key())
		if !ok {
			continue
		}
		if more, err := see(id); err != nil || !more {
			return err
		}
	}
	if err := t.line.Error(); err != nil {
		return t.dir.ReadError(err)
	}
	return nil
}

// eachInOrder calls see for the unfinished tasks of a key, until it returns false.
func (t *turn) eachInOrder(key string, see func(o *store.Ordered) bool) error {
	held := t.sh.holds.heads[key]
	seeID := func(id string) (bool, error) {
		e, f, err := t.find(id)
		if err != nil || f != readable || e.state != pending {
			return true, err
		}
		o := store.Ordered{Entry: store.Entry{ID: id, Due: e.due}}
		if held != nil && held.id == id {
			o.Due, o.Held = 0, true
		}
		o.Traits, _ = record.DecodeTraits(e.traits()) // what is not readable is dead-lettered by Hold
		return see(&o), nil
	}
	if held != nil {
		if more, err := seeID(held.id); err != nil || !more {
			return err
		}
	}
	return t.walk(key, func(id string) (bool, error) {
		if held != nil && held.id == id {
			return true, nil
		}
		return seeID(id)
	})
}

// head is the first unfinished task of a key, nil when there is none.
func (t *turn) head(key string) (first *store.Ordered, err error) {
	err = t.eachInOrder(key, func(o *store.Ordered) bool {
		first = o
		return false
	})
	return first, err
}

// behind returns the task that is before a pending one of these encoded traits, nil when
// that is the head of its key, or has none. What find returned is not valid any more if
// it had to search.
func (t *turn) behind(traits []byte, id string) (head *store.Ordered, searched bool, err error) {
	key := record.Ordering(traits)
	if key == "" {
		return nil, false, nil
	}
	if h := t.sh.holds.heads[key]; h != nil {
		return &store.Ordered{Entry: store.Entry{ID: h.id}, Held: true}, false, nil
	}
	var first string
	if err := t.walk(key, func(id string) (bool, error) {
		first = id
		return false, nil
	}); err != nil || first == id {
		return nil, false, err
	}
	if head, err = t.head(key); head != nil && head.ID == id {
		head = nil
	}
	return head, true, err
}

// closedTo reports whether the shard takes no task of an ordering key, empty for none: it
// is sealed, and no unfinished task has the key.
func (t *turn) closedTo(key string) (bool, error) {
	if !t.sh.meta.sealed || key == "" {
		return t.sh.meta.sealed, nil
	}
	head, err := t.head(key)
	return head == nil, err
}

// InOrder returns the first unfinished tasks of ordering keys.
func (s *Store) InOrder(ctx context.Context, name store.Shard, keys []string, limit int) (store.Stamp, [][]store.Ordered, error) {
	found := make([][]store.Ordered, len(keys))
	stamp, err := s.change(ctx, name, access{}, func(t *turn) error {
		for i, key := range keys {
			if limit <= 0 {
				break
			}
			if err := t.eachInOrder(key, func(o *store.Ordered) bool {
				found[i] = append(found[i], *o)
				return len(found[i]) < limit
			}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return stamp, found, nil
}

// checkOrder looks whether the task of a key stands there.
func (t *turn) checkOrder(stored []byte) (repaired bool, err error) {
	key, at, id, ok := decodeOrderKey(stored)
	if !ok {
		return true, t.remove(stored, true)
	}
	e, f, err := t.find(id)
	if err != nil || f == broken {
		return false, err // Hold will find it
	}
	if f == readable && e.state == pending && record.Ordering(e.traits()) == key && at == e.standsAt() {
		return false, nil
	}
	return true, t.remove(stored, true)
}

// checkLine puts an unfinished task where it belongs among those of its key.
func (t *turn) checkLine(id string, e *entry) (repaired bool, err error) {
	key := record.Ordering(e.traits())
	if key == "" {
		return false, nil
	}
	stored := appendOrderKey(nil, t.sh.number, key, e.standsAt(), id)
	if has, err := t.has(stored); has || err != nil {
		return false, err
	}
	return true, t.replace(stored, nil)
}
