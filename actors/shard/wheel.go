package shard

import (
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer"
)

// taskWheel is the timer queues of a shard's pending tasks and ordering keys, as its
// agenda uses them.
type taskWheel struct {
	*shardState
	due     *timer.Queue  // tasks
	keys    *timer.Queue  // ordering keys to look at; nil: none
	entries []timer.Entry // reused
	counted int           // of due, in the gauge
}

func (w *taskWheel) open() {
	w.due = w.openQueue(func(ms int64) { w.post(&slotDue{ms}) })
}

// close ends the queues.
func (w *taskWheel) close() {
	w.closeQueue(w.due)
	if w.keys != nil {
		w.closeQueue(w.keys)
		w.keys = nil
	}
}

// Clear empties the queues.
func (w *taskWheel) Clear() {
	w.close()
	w.open()
}

// Len returns how many tasks are in the queue.
func (w *taskWheel) Len() int { return w.due.Len() }

// InsertAll puts tasks into the queue, or moves them there.
func (w *taskWheel) InsertAll(es []store.Entry) {
	for _, e := range es {
		w.entries = append(w.entries, timer.Entry{ID: e.ID, Due: int64(e.Due)})
	}
	w.due.InsertAll(w.entries)
	clear(w.entries)
	if w.entries = w.entries[:0]; cap(w.entries) > loadPage {
		w.entries = nil
	}
}

// Remove takes a task out of the queue.
func (w *taskWheel) Remove(id string) { w.due.Remove(id) }

// has reports whether a task is in the queue.
func (w *taskWheel) has(id string) bool {
	_, there := w.due.Due(id)
	return there
}

// LookAt has an ordering key looked at.
func (w *taskWheel) LookAt(key string, when store.Millis) {
	if w.keys == nil {
		w.keys = w.openQueue(func(ms int64) { w.post(&orderLook{ms}) })
	}
	w.keys.Insert(key, int64(when))
}

// takeKeys returns the ordering keys to look at in a millisecond.
func (w *taskWheel) takeKeys(ms int64) []timer.Entry {
	if w.keys == nil {
		return nil
	}
	return w.keys.Take(ms)
}

// count keeps the gauge of tasks on the wheel.
func (w *taskWheel) count() {
	if n := w.Len(); n != w.counted {
		w.Metrics.Wheel.Add(float64(n - w.counted))
		w.counted = n
	}
}
