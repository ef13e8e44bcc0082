package pebblestore

import (
	"github.com/ddq-io/ddq/store"
)

// The steps that moves between states are made of. Each writes to the batch, and
// notes what applying it will change in memory.

// putTask writes an entry whose body lies outside the turn's scratch value.
func (t *turn) putTask(id string, e *entry) error {
	t.key = appendIDKey(t.key[:0], t.sh.number, tableTasks, id)
	e.stamp = t.stamp()
	t.value = append(e.appendHeader(t.value[:0]), e.body...)
	return t.set(t.key, t.value)
}

// rewriteTask writes an entry over the one of the same id.
func (t *turn) rewriteTask(id string, e *entry) error {
	e.rewritten = true
	return t.putTask(id, e)
}

func (t *turn) removeTask(id string, rewritten bool) error {
	t.key = appendIDKey(t.key[:0], t.sh.number, tableTasks, id)
	return t.remove(t.key, rewritten)
}

// dropTask deletes a task with its history.
func (t *turn) dropTask(id string, e *entry) error {
	if e.history {
		if err := t.forget(id); err != nil {
			return err
		}
	}
	if err := t.removeEntries(id, e.attributes()); err != nil {
		return err
	}
	return t.removeTask(id, e.rewritten)
}

func (t *turn) addTo(index table, at store.Millis, id string) error {
	t.key = appendTimeKey(t.key[:0], t.sh.number, index, at, id)
	return t.index(t.key, nil)
}

func (t *turn) removeFrom(index table, at store.Millis, id string) error {
	t.key = appendTimeKey(t.key[:0], t.sh.number, index, at, id)
	return t.remove(t.key, false)
}

// addPending makes a task pending in the index, which keeps its encoded traits, and
// in that of its lane.
func (t *turn) addPending(due store.Millis, id string, traits []byte) error {
	t.pending++
	t.becamePending = true
	t.sh.firstDue = min(t.sh.firstDue, due)
	if key := appendLaneKey(nil, t.sh.number, traits, due, id); key != nil {
		if err := t.index(key, traits); err != nil {
			return err
		}
	}
	t.key = appendTimeKey(t.key[:0], t.sh.number, tablePending, due, id)
	return t.index(t.key, traits)
}

func (t *turn) removePending(due store.Millis, id string, traits []byte) error {
	t.pending--
	if key := appendLaneKey(nil, t.sh.number, traits, due, id); key != nil {
		if err := t.remove(key, false); err != nil {
			return err
		}
	}
	return t.removeFrom(tablePending, due, id)
}

// The holds that begin or are extended in a turn are written by apply, in one group.

func (t *turn) beginHold(h *hold) { t.begun = append(t.begun, h) }

func (t *turn) endHold(h *hold) { t.ended = append(t.ended, h) }

// addDead writes the dead letter of a task that is in no index any more.
func (t *turn) addDead(id string, e *entry, reason store.Reason) error {
	e.state = dead
	if reason == store.ReasonExpired {
		e.state = expired
	}
	e.reason, e.finished, e.trim, e.token, e.first = reason, t.ms, 0, store.Token{}, false
	t.dead++
	if err := t.rewriteTask(id, e); err != nil {
		return err
	}
	return t.addTo(tableDead, e.finished, id)
}

// addDone writes the done task of a hold that has ended.
func (t *turn) addDone(h *hold, e *entry, trim store.Millis) error {
	e.state, e.reason, e.finished, e.trim = done, store.ReasonNone, t.ms, trim
	e.token, e.attempt, e.first = h.token, h.attempt, false
	t.done++
	if err := t.rewriteTask(h.id, e); err != nil {
		return err
	}
	if err := t.addTo(tableDone, e.finished, h.id); err != nil {
		return err
	}
	t.sh.firstTrim = min(t.sh.firstTrim, trim)
	return t.addTo(tableTrim, trim, h.id)
}

// removeFinished takes a done or dead task out of its indexes.
func (t *turn) removeFinished(id string, e *entry) error {
	if e.state != done {
		t.dead--
		return t.removeFrom(tableDead, e.finished, id)
	}
	t.done--
	if err := t.removeFrom(tableDone, e.finished, id); err != nil {
		return err
	}
	return t.removeFrom(tableTrim, e.trim, id)
}

// bury makes a dead letter of what is not readable and not held. Where it stands
// among the pending tasks is not known when its header is gone: its place there is
// looked for.
func (t *turn) bury(id string, e *entry, f found) error {
	due := e.due
	if f == broken {
		at, ok, err := t.pendingAt(id)
		if err != nil {
			return err
		}
		if ok {
			due = at
			t.pending--
			if err := t.removeFrom(tablePending, at, id); err != nil {
				return err
			}
		}
	} else {
		if err := t.removePending(due, id, e.traits()); err != nil {
			return err
		}
		if err := t.stepOut(e.traits(), e.standsAt(), id); err != nil {
			return err
		}
	}
	e.due, e.unreadable = due, true
	t.tell(store.Change{Kind: store.ChangeDead, ID: id, Attempt: e.attempt, Reason: store.ReasonCorrupt}, e)
	return t.addDead(id, e, store.ReasonCorrupt)
}

// pendingAt looks for an id among the pending tasks. It may read all of them.
func (t *turn) pendingAt(id string) (at store.Millis, ok bool, err error) {
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
