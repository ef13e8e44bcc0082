package pebblestore

import "github.com/ddq-io/ddq/store"

// drop deletes a task with its history.
func (t *transaction) drop(id string, e *entry) error {
	if e.history {
		if err := t.history.forget(id); err != nil {
			return err
		}
	}
	if err := t.attributes.drop(id, e.attributes()); err != nil {
		return err
	}
	return t.tasks.erase(id, e.rewritten)
}

// bury makes a dead letter of what is not readable and not held. Where it stands
// among the pending tasks is not known when its header is gone: its place there is
// looked for.
func (t *transaction) bury(id string, e *entry, f found) error {
	due := e.due
	if f == broken {
		at, ok, err := t.pendingAt(id)
		if err != nil {
			return err
		}
		if ok {
			due = at
			t.next.pending--
			if err := t.tasks.removeFrom(tablePending, at, id); err != nil {
				return err
			}
		}
	} else {
		if err := t.tasks.removePending(due, id, e.traits()); err != nil {
			return err
		}
		if err := t.line.leave(e.traits(), e.standsAt(), id); err != nil {
			return err
		}
	}
	e.due, e.unreadable = due, true
	t.log.tell(store.Change{Kind: store.ChangeDead, ID: id, Attempt: e.attempt, Reason: store.ReasonCorrupt}, e)
	return t.tasks.addDead(id, e, store.ReasonCorrupt)
}

// pendingAt looks for an id among the pending tasks. It may read all of them.
func (t *transaction) pendingAt(id string) (at store.Millis, ok bool, err error) {
	lower := appendPrefix(nil, t.sh.number, tablePending)
	upper := appendPrefix(nil, t.sh.number, tablePending+1)
	err = t.dir.Scan(lower, upper, func(key, _ []byte) (bool, error) {
		due, other, fine := decodeTimeKey(key)
		if fine && other == id {
			at, ok = due, true
		}
		return !ok, nil
	})
	return at, ok, err
}
