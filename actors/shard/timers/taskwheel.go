package timers

import (
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer"
)

// entriesKept is for how many entries room is kept between two inserts.
const entriesKept = 5000

// TaskWheel is the timer queues of a shard's pending tasks and ordering keys, as its
// agenda uses them.
type TaskWheel struct {
	timers  *Timers
	tell    Told
	due     *timer.Queue // tasks, told of lead before their due times
	exact   *timer.Queue // and those told of when they are due; nil: none
	crowds  *timer.Queue // due times of many tasks, by when to tell of them; nil: none
	lead    store.Millis
	keys    *timer.Queue  // ordering keys to look at; nil: none
	entries []timer.Entry // reused
	counted int           // tasks, see Change
}

// Told are called at the moments of the queues, off the actor. What is due is taken then, by the
// method that is named.
type Told struct {
	Due    func(ms int64) // tasks of this millisecond are due, or will be shortly: TakeDue
	Exact  func(ms int64) // tasks of this millisecond are due that are not told of ahead: TakeExact
	Crowds func(ms int64) // it is time to look at what is due in certain milliseconds: TakeCrowds
	Keys   func(ms int64) // it is time to look at ordering keys: TakeKeys
}

// NewTaskWheel returns a wheel that is to be opened.
func NewTaskWheel(timers *Timers, tell Told) TaskWheel { return TaskWheel{timers: timers, tell: tell} }

// Open opens the queue of tasks; others are opened when there is something for them.
func (w *TaskWheel) Open() {
	w.due = w.timers.OpenQueue(w.tell.Due)
	w.timers.SetLead(w.due, w.lead)
}

// SetLead has tasks told of so long before their due times.
func (w *TaskWheel) SetLead(lead store.Millis) {
	w.lead = lead
	w.timers.SetLead(w.due, lead)
}

// Close ends the queues.
func (w *TaskWheel) Close() {
	w.timers.CloseQueue(w.due)
	for _, q := range []**timer.Queue{&w.exact, &w.crowds, &w.keys} {
		if *q != nil {
			w.timers.CloseQueue(*q)
			*q = nil
		}
	}
}

// Lead is how long before their due times tasks are told of.
func (w *TaskWheel) Lead() store.Millis { return w.lead }

// Clear empties the queues.
func (w *TaskWheel) Clear() {
	w.Close()
	w.Open()
}

// Len returns how many tasks are in the queues.
func (w *TaskWheel) Len() int {
	if w.exact == nil {
		return w.due.Len()
	}
	return w.due.Len() + w.exact.Len()
}

// InsertAll puts tasks into the queue, or moves them there.
func (w *TaskWheel) InsertAll(es []store.Entry) { w.insert(w.due, w.exact, es) }

// InsertExact does so with tasks that are told of when they are due.
func (w *TaskWheel) InsertExact(es []store.Entry) {
	if w.exact == nil {
		w.exact = w.timers.OpenQueue(w.tell.Exact)
	}
	w.insert(w.exact, w.due, es)
}

// insert puts tasks into a queue, and out of the other one.
func (w *TaskWheel) insert(q, other *timer.Queue, es []store.Entry) {
	moves := other != nil && other.Len() > 0
	for _, e := range es {
		w.entries = append(w.entries, timer.Entry{ID: e.ID, Due: int64(e.Due)})
		if moves {
			other.Remove(e.ID)
		}
	}
	q.InsertAll(w.entries)
	clear(w.entries)
	if w.entries = w.entries[:0]; cap(w.entries) > entriesKept {
		w.entries = nil
	}
}

// Remove takes a task out of the queue.
func (w *TaskWheel) Remove(id string) {
	if !w.due.Remove(id) && w.exact != nil {
		w.exact.Remove(id)
	}
}

// Due returns when a task is due that is in a queue.
func (w *TaskWheel) Due(id string) (store.Millis, bool) {
	due, there := w.due.Due(id)
	if !there && w.exact != nil {
		due, there = w.exact.Due(id)
	}
	return store.Millis(due), there
}

// Has reports whether a task is in a queue.
func (w *TaskWheel) Has(id string) bool {
	_, there := w.Due(id)
	return there
}

// At is how many tasks that are told of ahead are due then.
func (w *TaskWheel) At(due store.Millis) int { return w.due.At(int64(due)) }

// Count adds up how many tasks are due in each of the periods that begin at from.
func (w *TaskWheel) Count(from, period store.Millis, counts []int64) {
	w.due.Count(int64(from), int64(period), counts)
	if w.exact != nil {
		w.exact.Count(int64(from), int64(period), counts)
	}
}

// Crowd has the tasks of a due time told of at a moment before.
func (w *TaskWheel) Crowd(due, when store.Millis) {
	if w.crowds == nil {
		w.crowds = w.timers.OpenQueue(w.tell.Crowds)
	}
	w.crowds.Insert(alarmID(due), int64(when))
}

// TakeCrowds returns the due times that are to be told of in a millisecond.
func (w *TaskWheel) TakeCrowds(ms int64) (dues []store.Millis) {
	if w.crowds == nil {
		return nil
	}
	for _, e := range w.crowds.Take(ms) {
		dues = append(dues, alarmOf(e.ID))
	}
	return dues
}

// TakeDue returns the tasks that are due from a millisecond on until another one.
func (w *TaskWheel) TakeDue(from, until store.Millis) []store.Entry { return take(w.due, from, until) }

// TakeExact returns the tasks of a millisecond that are not told of ahead.
func (w *TaskWheel) TakeExact(ms store.Millis) []store.Entry { return take(w.exact, ms, ms) }

// take returns the tasks of a queue that are due from a millisecond on until another one.
func take(q *timer.Queue, from, until store.Millis) (es []store.Entry) {
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
func (w *TaskWheel) LookAt(key string, when store.Millis) {
	if w.keys == nil {
		w.keys = w.timers.OpenQueue(w.tell.Keys)
	}
	w.keys.Insert(key, int64(when))
}

// TakeKeys returns the ordering keys to look at in a millisecond.
func (w *TaskWheel) TakeKeys(ms int64) []timer.Entry {
	if w.keys == nil {
		return nil
	}
	return w.keys.Take(ms)
}

// Change is how many more tasks there are than when it was asked the last time.
func (w *TaskWheel) Change() int {
	n := w.Len()
	more := n - w.counted
	w.counted = n
	return more
}
