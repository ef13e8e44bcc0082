package shard

import (
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer"
)

// What the wheel tells the shard.
type (
	// slotDue: tasks of this millisecond are due, or will be shortly.
	slotDue struct{ ms int64 }
	// exactDue: tasks of this millisecond are due that are not held ahead.
	exactDue struct{ ms int64 }
	// crowdsDue: it is time to hold what is due in certain milliseconds.
	crowdsDue struct{ ms int64 }
	// orderLook: it is time to look at ordering keys.
	orderLook struct{ ms int64 }
)

// taskWheel is the timer queues of a shard's pending tasks and ordering keys, as its
// agenda uses them.
type taskWheel struct {
	*shardState
	due     *timer.Queue // tasks, told of lead before their due times
	exact   *timer.Queue // and those told of when they are due; nil: none
	crowds  *timer.Queue // due times of many tasks, by when to tell of them; nil: none
	lead    store.Millis
	keys    *timer.Queue  // ordering keys to look at; nil: none
	entries []timer.Entry // reused
	counted int           // of due, in the gauge
}

func (w *taskWheel) open() {
	w.due = w.openQueue(func(ms int64) { w.post(&slotDue{ms}) })
	w.shardClock.lead(w.due, w.lead)
}

// setLead has tasks told of so long before their due times.
func (w *taskWheel) setLead(lead store.Millis) {
	w.lead = lead
	w.shardClock.lead(w.due, lead)
}

// close ends the queues.
func (w *taskWheel) close() {
	w.closeQueue(w.due)
	for _, q := range []**timer.Queue{&w.exact, &w.crowds, &w.keys} {
		if *q != nil {
			w.closeQueue(*q)
			*q = nil
		}
	}
}

// Clear empties the queues.
func (w *taskWheel) Clear() {
	w.close()
	w.open()
}

// Len returns how many tasks are in the queues.
func (w *taskWheel) Len() int {
	if w.exact == nil {
		return w.due.Len()
	}
	return w.due.Len() + w.exact.Len()
}

// InsertAll puts tasks into the queue, or moves them there.
func (w *taskWheel) InsertAll(es []store.Entry) { w.insert(w.due, w.exact, es) }

// InsertExact does so with tasks that are told of when they are due.
func (w *taskWheel) InsertExact(es []store.Entry) {
	if w.exact == nil {
		w.exact = w.openQueue(func(ms int64) { w.post(&exactDue{ms}) })
	}
	w.insert(w.exact, w.due, es)
}

// insert puts tasks into a queue, and out of the other one.
func (w *taskWheel) insert(q, other *timer.Queue, es []store.Entry) {
	moves := other != nil && other.Len() > 0
	for _, e := range es {
		w.entries = append(w.entries, timer.Entry{ID: e.ID, Due: int64(e.Due)})
		if moves {
			other.Remove(e.ID)
		}
	}
	q.InsertAll(w.entries)
	clear(w.entries)
	if w.entries = w.entries[:0]; cap(w.entries) > loadPage {
		w.entries = nil
	}
}

// Remove takes a task out of the queue.
func (w *taskWheel) Remove(id string) {
	if !w.due.Remove(id) && w.exact != nil {
		w.exact.Remove(id)
	}
}

// Due returns when a task is due that is in a queue.
func (w *taskWheel) Due(id string) (store.Millis, bool) {
	due, there := w.due.Due(id)
	if !there && w.exact != nil {
		due, there = w.exact.Due(id)
	}
	return store.Millis(due), there
}

// has reports whether a task is in a queue.
func (w *taskWheel) has(id string) bool {
	_, there := w.Due(id)
	return there
}

// At is how many tasks that are told of ahead are due then.
func (w *taskWheel) At(due store.Millis) int { return w.due.At(int64(due)) }

// Crowd has the tasks of a due time told of at a moment before.
func (w *taskWheel) Crowd(due, when store.Millis) {
	if w.crowds == nil {
		w.crowds = w.openQueue(func(ms int64) { w.post(&crowdsDue{ms}) })
	}
	w.crowds.Insert(alarmID(due), int64(when))
}

// takeCrowds returns the due times that are to be told of in a millisecond.
func (w *taskWheel) takeCrowds(ms int64) (dues []store.Millis) {
	if w.crowds == nil {
		return nil
	}
	for _, e := range w.crowds.Take(ms) {
		dues = append(dues, alarmOf(e.ID))
	}
	return dues
}

// take returns the tasks of a queue that are due from a millisecond on until another one.
func (w *taskWheel) take(q *timer.Queue, from, until store.Millis) (es []store.Entry) {
	if q == nil {
		return nil
	}
	for at := from; at <= max(from, until); at++ {
		for _, e := range q.Take(int64(at)) {
			es = append(es, store.Entry{ID: e.ID, Due: store.Millis(e.Due)})
		}
	}
	return es
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
