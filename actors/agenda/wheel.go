package agenda

import "github.com/ddq-io/ddq/store"

// Wheel holds tasks until they are due, and the moments to look at ordering keys. It has
// the only index of the tasks, as there may be millions: the Shard asks it how many there
// are, and changes it at once.
type Wheel interface {
	Len() int                             // of the tasks
	Due(id string) (store.Millis, bool)   // when a task is due that is there
	InsertAll(es []store.Entry)           // moves those that are there; keeps nothing of es
	InsertExact(es []store.Entry)         // InsertAll of tasks that it tells of when they are due, and not ahead
	Remove(id string)                     // a task that may not be there
	At(due store.Millis) int              // how many tasks it tells of ahead are due then
	Crowd(due, when store.Millis)         // Shard.Crowd then; the last one counts for a due time
	LookAt(key string, when store.Millis) // LookAtKey then; the last one counts for a key
	Clear()
}

// leftOut is the key at which what was left out is looked at. No ordering key is empty.
const leftOut = ""

// stagedWheel is the wheel, and what a step has put there so far: it goes in at once, at
// the end of the step or before somebody looks.
type stagedWheel struct {
	Wheel
	ahead *ahead
	page  int           // how much to keep room for
	tasks []store.Entry // to be inserted
	exact []store.Entry // and such as are not held ahead
	moved int           // tasks of the wheel that this step puts there once more
}

// all is how many tasks there are, with those to be inserted. A task that is read again counts once.
func (w *stagedWheel) all() int { return w.Len() + len(w.tasks) + len(w.exact) - w.moved }

// moves notes that a task is about to be staged or removed: if it is in the wheel, its place is free.
func (w *stagedWheel) moves(id string) {
	if _, there := w.Wheel.Due(id); there {
		w.moved++
	}
}

// stage puts a task into the wheel at the end of the step.
func (w *stagedWheel) stage(e store.Entry, exact bool) {
	to, other := &w.tasks, &w.exact
	if exact {
		to, other = other, to
	}
	if len(*other) > 0 {
		w.insert() // it may be among those: what comes last counts
	}
	*to = append(*to, e)
}

// insert puts what was staged into the wheel.
func (w *stagedWheel) insert() {
	w.moved = 0
	if len(w.exact) > 0 {
		w.InsertExact(w.exact)
		clear(w.exact)
		w.exact = w.exact[:0]
	}
	if len(w.tasks) == 0 {
		return
	}
	w.InsertAll(w.tasks)
	w.ahead.expectCrowds(w.tasks)
	clear(w.tasks)
	if w.tasks = w.tasks[:0]; cap(w.tasks) > w.page {
		w.tasks = nil
	}
}

// Due is when a task is due that is there.
func (w *stagedWheel) Due(id string) (store.Millis, bool) {
	w.insert()
	return w.Wheel.Due(id)
}

// Remove takes a task out that may not be there.
func (w *stagedWheel) Remove(id string) {
	w.insert()
	w.Wheel.Remove(id)
}

// Clear takes everything out.
func (w *stagedWheel) Clear() {
	w.tasks, w.exact, w.moved, w.ahead.crowds = nil, nil, 0, nil
	w.Wheel.Clear()
}
