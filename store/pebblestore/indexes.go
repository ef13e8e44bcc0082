package pebblestore

import (
	"bytes"
	"slices"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
)

// checkLine puts an unfinished task where it belongs among those of its key.
func (w *sweep) checkLine(id string, e *entry) (repaired bool, err error) {
	key := record.Ordering(e.traits())
	if key == "" {
		return false, nil
	}
	stored := appendOrderKey(nil, w.sh.number, key, e.standsAt(), id)
	if has, err := w.has(stored); has || err != nil {
		return false, err
	}
	return true, w.replace(stored, nil)
}

// checkOrder looks whether the task of a key stands there.
func (w *sweep) checkOrder(stored []byte) (repaired bool, err error) {
	key, at, id, ok := decodeOrderKey(stored)
	if !ok {
		return true, w.remove(stored, true)
	}
	e, f, err := w.find(id)
	if err != nil || f == broken {
		return false, err // Hold will find it
	}
	if f == readable && e.state == pending && record.Ordering(e.traits()) == key && at == e.standsAt() {
		return false, nil
	}
	return true, w.remove(stored, true)
}

// checkLane looks whether the task of a key is pending in that lane.
func (w *sweep) checkLane(key []byte) (repaired bool, err error) {
	_, due, id, ok := decodeLaneKey(key)
	if !ok {
		return true, w.remove(key, true)
	}
	e, f, err := w.find(id)
	if err != nil {
		return false, err
	}
	if f == readable && e.state == pending && w.sh.holds.get(id) == nil &&
		bytes.Equal(key, appendLaneKey(nil, w.sh.number, e.traits(), due, id)) && e.due == due {
		return false, nil
	}
	return true, w.remove(key, true)
}

// checkEntries looks whether the index has what the header of a task says.
func (w *sweep) checkEntries(id string) (repaired bool, err error) {
	if !w.sh.meta.indexed {
		return false, nil
	}
	e, f, err := w.find(id)
	if err != nil || f != readable {
		return false, err
	}
	for _, a := range e.attributes() {
		key := appendIndexKey(nil, w.sh.number, a, id)
		has, err := w.has(key)
		if err == nil && !has {
			repaired, err = true, w.replace(key, nil)
		}
		if err != nil {
			return repaired, err
		}
	}
	return repaired, nil
}

// checkEntry looks whether the task of an entry has the attribute.
func (w *sweep) checkEntry(key []byte) (repaired bool, err error) {
	name, want, id, ok := record.CutIndexEntry(key[prefixLen:])
	if ok {
		e, f, err := w.find(string(id))
		if err != nil {
			return false, err
		}
		if f == readable && slices.ContainsFunc(e.attributes(), func(a store.Attribute) bool {
			return a.Key == name && store.NewIndexEntry(a.Value, "") == want
		}) {
			return false, nil
		}
	}
	return true, w.remove(key, true)
}

// checkHistory looks whether there is a task that a history is of.
func (w *sweep) checkHistory(key []byte) (repaired bool, err error) {
	if id, ok := decodeID(key[prefixLen:]); ok {
		e, f, err := w.find(id)
		if err != nil || f == broken || f == readable && e.history {
			return false, err
		}
	}
	return true, w.remove(key, true)
}

// checkJournal looks whether an entry is of a task that has a journal.
func (w *sweep) checkJournal(key []byte) (repaired bool, err error) {
	in := input{b: key[prefixLen:]}
	id := in.text()
	if in.short {
		return true, w.remove(key, true)
	}
	if h := w.sh.holds.get(id); h != nil && h.taskJournal {
		return false, nil
	}
	e, f, err := w.find(id)
	if err != nil || f == broken || f == readable && e.journal {
		return false, err
	}
	return true, w.remove(key, true)
}
