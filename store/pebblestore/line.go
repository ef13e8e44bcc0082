package pebblestore

import (
	"bytes"

	"github.com/cockroachdb/pebble/v2"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
)

// line is where the unfinished tasks of an ordering key stand one behind the other.
//
// A task that is held is the first of its line, wherever its entry is: that is known from
// the holds. Once it was held and is pending again its entry says so, and is moved.
type line struct {
	*batch
	keys *pebble.Iterator // over ordering keys, as they were when it was made; nil: none
}

// enter puts a task with these encoded traits among those of its ordering key, if it
// has one.
func (l *line) enter(traits []byte, at store.Millis, id string) error {
	key := record.Ordering(traits)
	if key == "" {
		return nil
	}
	return l.index(appendOrderKey(nil, l.sh.number, key, at, id), nil)
}

// leave takes it out again.
func (l *line) leave(traits []byte, at store.Millis, id string) error {
	key := record.Ordering(traits)
	if key == "" {
		return nil
	}
	return l.remove(appendOrderKey(nil, l.sh.number, key, at, id), true)
}

// leaveHeld takes a held task out of its line, if it has one.
func (l *line) leaveHeld(h *hold) error {
	if h.place == nil {
		return nil
	}
	return l.remove(appendOrderKey(nil, l.sh.number, h.place.key, h.place.at, h.id), true)
}

// stayFirst makes a task the first of its line, if it has one, that is held no more.
func (l *line) stayFirst(h *hold) error {
	if h.place == nil || h.place.at == wasHeld {
		return nil
	}
	if err := l.leaveHeld(h); err != nil {
		return err
	}
	return l.index(appendOrderKey(nil, l.sh.number, h.place.key, wasHeld, h.id), nil)
}

// walk calls see for the entries of a key's line, in their order, until it returns
// false. Those that point to no unfinished task, which Sweep removes, are among them.
func (l *line) walk(key string, see func(id string) (bool, error)) (err error) {
	if l.keys == nil { // one for all keys of a call: making it costs more than the look
		lower, upper := appendPrefix(nil, l.sh.number, tableOrder), appendPrefix(nil, l.sh.number, tableOrder+1)
		if l.keys, err = l.dir.DB().NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper}); err != nil {
			return l.dir.ReadError(err)
		}
	}
	prefix := appendOrder(nil, l.sh.number, key)
	for ok := l.keys.SeekGE(prefix); ok && bytes.HasPrefix(l.keys.Key(), prefix); ok = l.keys.Next() {
		_, _, id, ok := decodeOrderKey(l.keys.Key())
		if !ok {
			continue
		}
		if more, err := see(id); err != nil || !more {
			return err
		}
	}
	if err := l.keys.Error(); err != nil {
		return l.dir.ReadError(err)
	}
	return nil
}

// each calls see for the unfinished tasks of a key, until it returns false.
func (l *line) each(key string, see func(o *store.Ordered) bool) error {
	held := l.sh.holds.heads[key]
	seeID := func(id string) (bool, error) {
		e, f, err := l.find(id)
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
	return l.walk(key, func(id string) (bool, error) {
		if held != nil && held.id == id {
			return true, nil
		}
		return seeID(id)
	})
}

// head is the first unfinished task of a key, nil when there is none.
func (l *line) head(key string) (first *store.Ordered, err error) {
	err = l.each(key, func(o *store.Ordered) bool {
		first = o
		return false
	})
	return first, err
}

// behind returns the task that is before a pending one of these encoded traits, nil when
// that is the head of its key, or has none. What find returned is not valid any more if
// it had to search.
func (l *line) behind(traits []byte, id string) (head *store.Ordered, searched bool, err error) {
	key := record.Ordering(traits)
	if key == "" {
		return nil, false, nil
	}
	if h := l.sh.holds.heads[key]; h != nil {
		return &store.Ordered{Entry: store.Entry{ID: h.id}, Held: true}, false, nil
	}
	var first string
	if err := l.walk(key, func(id string) (bool, error) {
		first = id
		return false, nil
	}); err != nil || first == id {
		return nil, false, err
	}
	if head, err = l.head(key); head != nil && head.ID == id {
		head = nil
	}
	return head, true, err
}

// closedTo reports whether the shard takes no task of an ordering key, empty for none: it
// is sealed, and no unfinished task has the key.
func (l *line) closedTo(key string) (bool, error) {
	if !l.sh.meta.sealed || key == "" {
		return l.sh.meta.sealed, nil
	}
	head, err := l.head(key)
	return head == nil, err
}

// close forgets what was seen: the next look at a line sees it as it is then.
func (l *line) close() error {
	if l.keys == nil {
		return nil
	}
	err := l.keys.Close()
	l.keys = nil
	if err != nil {
		return l.dir.ReadError(err)
	}
	return nil
}
