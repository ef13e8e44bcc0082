package pebblestore

import (
	"github.com/ddq-io/ddq/store"
)

// tasks are the entries of tasks, and the indexes by which those of a state are found.
type tasks struct{ *batch }

// put writes an entry whose body lies outside the batch's scratch value.
func (t *tasks) put(id string, e *entry) error {
	t.key = appendIDKey(t.key[:0], t.sh.number, tableTasks, id)
	e.stamp = t.stamp()
	t.value = append(e.appendHeader(t.value[:0]), e.body...)
	return t.set(t.key, t.value)
}

// rewrite writes an entry over the one of the same id.
func (t *tasks) rewrite(id string, e *entry) error {
	e.rewritten = true
	return t.put(id, e)
}

func (t *tasks) erase(id string, rewritten bool) error {
	t.key = appendIDKey(t.key[:0], t.sh.number, tableTasks, id)
	return t.remove(t.key, rewritten)
}

func (t *tasks) addTo(index table, at store.Millis, id string) error {
	t.key = appendTimeKey(t.key[:0], t.sh.number, index, at, id)
	return t.index(t.key, nil)
}

func (t *tasks) removeFrom(index table, at store.Millis, id string) error {
	t.key = appendTimeKey(t.key[:0], t.sh.number, index, at, id)
	return t.remove(t.key, false)
}

// addPending makes a task pending in the index, which keeps its encoded traits, and
// in that of its lane.
func (t *tasks) addPending(due store.Millis, id string, traits []byte) error {
	t.next.pending++
	t.next.becamePending = true
	t.sh.firstDue = min(t.sh.firstDue, due)
	t.countDue(due, 1)
	if key := appendLaneKey(nil, t.sh.number, traits, due, id); key != nil {
		if err := t.index(key, traits); err != nil {
			return err
		}
	}
	t.key = appendTimeKey(t.key[:0], t.sh.number, tablePending, due, id)
	return t.index(t.key, traits)
}

func (t *tasks) removePending(due store.Millis, id string, traits []byte) error {
	if key := appendLaneKey(nil, t.sh.number, traits, due, id); key != nil {
		if err := t.remove(key, false); err != nil {
			return err
		}
	}
	return t.leavePending(due, id)
}

// leavePending takes a task out of the index of those that are pending.
func (t *tasks) leavePending(due store.Millis, id string) error {
	t.next.pending--
	t.countDue(due, -1)
	return t.removeFrom(tablePending, due, id)
}

// addDead writes the dead letter of a task that is in no index any more.
func (t *tasks) addDead(id string, e *entry, reason store.Reason) error {
	e.state = dead
	if reason == store.ReasonExpired {
		e.state = expired
	}
	e.reason, e.finished, e.trim, e.token, e.first = reason, t.ms, 0, store.Token{}, false
	t.next.dead++
	if err := t.rewrite(id, e); err != nil {
		return err
	}
	return t.addTo(tableDead, e.finished, id)
}

// addDone writes the done task of a hold that has ended.
func (t *tasks) addDone(h *hold, e *entry, trim store.Millis) error {
	e.state, e.reason, e.finished, e.trim = done, store.ReasonNone, t.ms, trim
	e.token, e.attempt, e.first = h.token, h.attempt, false
	t.next.done++
	if err := t.rewrite(h.id, e); err != nil {
		return err
	}
	if err := t.addTo(tableDone, e.finished, h.id); err != nil {
		return err
	}
	t.sh.firstTrim = min(t.sh.firstTrim, trim)
	return t.addTo(tableTrim, trim, h.id)
}

// removeFinished takes a done or dead task out of its indexes.
func (t *tasks) removeFinished(id string, e *entry) error {
	if e.state != done {
		t.next.dead--
		return t.removeFrom(tableDead, e.finished, id)
	}
	t.next.done--
	if err := t.removeFrom(tableDone, e.finished, id); err != nil {
		return err
	}
	return t.removeFrom(tableTrim, e.trim, id)
}
