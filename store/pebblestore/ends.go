package pebblestore

import "github.com/ddq-io/ddq/store"

// erase deletes a task with its history, its journal and its attributes.
func (t *transaction) erase(id string, e *entry) error {
	if e.history {
		if err := t.history.forget(id); err != nil {
			return err
		}
	}
	if e.journal {
		if err := t.journals.forget(id); err != nil {
			return err
		}
	}
	if err := t.attributes.drop(id, e.attributes()); err != nil {
		return err
	}
	return t.tasks.erase(id, e.rewritten)
}

// tellEnd tells those who watch the shard, and the cell that the task of an entry names, how
// the task ends for good, or that it is pending again after that. Whatever ends a task
// calls it, in the same batch. h is the hold by which it ends, nil for none; the cell is told the result
// of an ack, and what was said.
func (t *transaction) tellEnd(c store.Change, e *entry, h *hold, result, say []byte) error {
	if h != nil {
		c.ID = h.id
		t.log.tellHeld(h, c, e)
	} else {
		t.log.tell(c, e)
	}
	return t.leave(store.Ended{ID: c.ID, Kind: c.Kind, Reason: c.Reason, Attempt: c.Attempt, Result: result, Say: say}, e, h)
}

// leave leaves a parcel for the cell that the task of an entry names, if it names one.
func (t *transaction) leave(ended store.Ended, e *entry, h *hold) error {
	if e.tells == "" {
		return nil
	}
	ended.Due, ended.Error = e.due, e.lastError
	if h != nil {
		ended.Started = h.started
		ended.Worker, _ = h.who()
	}
	return t.boxes.push(&store.Parcel{To: e.tells, Ended: &ended})
}

// endPending takes a task out of those that are pending, which ends it.
func (t *transaction) endPending(e *entry, c store.Change) error {
	if err := t.tasks.removePending(e.due, c.ID, e.traits()); err != nil {
		return err
	}
	if err := t.tellEnd(c, e, nil, nil, nil); err != nil {
		return err
	}
	return t.line.leave(e.traits(), e.standsAt(), c.ID)
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
			if err := t.tasks.leavePending(at, id); err != nil {
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
	e.journal = e.journal || f == broken // if it has one, that goes with it
	if err := t.tellEnd(store.Change{Kind: store.ChangeDead, ID: id, Attempt: e.attempt, Reason: store.ReasonCorrupt}, e, nil, nil, nil); err != nil {
		return err
	}
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
