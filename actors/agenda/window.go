package agenda

import (
	"math"

	"github.com/ddq-io/ddq/store"
)

// window knows how far a shard's view of the store reaches: every pending task
// up to the watermark is in the wheel, ready, or being held. It has no clock and
// no I/O; the shard asks it what to keep and what to load.
//
// Ids of equal due time have an order that only the store knows, so coverage is
// by due time; a task learned twice is recognized by its id.
//
// Where nothing is pending behind the watermark it follows the time without a look at
// the store: up to Clear, which is the first task there as the store had it, or one that
// became pending since.
type window struct {
	Mark    store.Entry  // loaded up to here; an empty ID: only what is due before
	Clear   store.Millis // no task is pending from Mark on until before this; 0: not known
	loading bool         // a page is being read
	anew    bool         // the last page that was asked for is the first of all
	peeking bool         // it is that of Peek
	heard   store.Millis // the first that became pending while peeking
	goal    store.Millis // the page's upper bound
	lowered *store.Entry // lowered while a page was being read
	Full    bool         // something did not fit: load again when there is room
	Wheel   int          // most tasks waiting in the wheel
	Ready   int          // most ready tasks
	Spare   store.Millis // tasks due this soon are taken in above the wheel's budget
}

// Covers reports whether a task that became pending must be taken in: what lies
// beyond the watermark the loader will find.
func (w *window) Covers(due store.Millis) bool {
	if w.loading && due <= w.goal {
		return true
	}
	return due < w.Mark.Due || due == w.Mark.Due && w.Mark.ID != ""
}

// Fits reports whether there is room for a task while inWheel and ready others
// are. One that may not lowers the watermark.
func (w *window) Fits(due, now store.Millis, inWheel, ready int) bool {
	if w.takes(due, now, load{inWheel, ready}) {
		return true
	}
	w.Lower(due)
	return false
}

// takes reports whether there is room for a task beside what is there.
func (w *window) takes(due, now store.Millis, all load) bool {
	if due <= now {
		return all.ready < w.Ready
	}
	return all.wheel < w.Wheel || due <= now+w.Spare
}

// Lower puts the watermark before everything due at due or later.
func (w *window) Lower(due store.Millis) {
	w.Full, w.Clear = true, 0
	if w.Mark.Due >= due {
		w.Mark = store.Entry{Due: due}
	}
	if w.loading && (w.lowered == nil || due < w.lowered.Due) {
		w.lowered = &store.Entry{Due: due}
	}
}

// Begin returns the next page to read, up to goal, unless one is being read or
// all is known already.
func (w *window) Begin(goal store.Millis, limit int) (store.WindowQuery, bool) {
	w.Advance(goal)
	if w.loading || w.Mark.Due > goal {
		return store.WindowQuery{}, false
	}
	w.loading, w.goal, w.Full, w.lowered = true, goal, false, nil
	w.anew = w.Mark.Due == math.MinInt64
	return store.WindowQuery{After: w.Mark, To: goal, Limit: limit}, true
}

// End records that a page was read: its last entry, and whether more follow.
// It is called before the page's tasks are offered to fits.
func (w *window) End(last store.Entry, more bool) {
	w.loading = false
	w.Mark = store.Entry{Due: w.goal + 1}
	if more {
		w.Mark = last
	}
	if w.lowered != nil && w.lowered.Due <= w.Mark.Due {
		w.Mark = *w.lowered
	}
	w.lowered = nil
}

// end is End of a page.
func (w *window) end(page []store.Entry, more bool) {
	var last store.Entry
	if more {
		last = page[len(page)-1]
	}
	w.End(last, more)
}

// Abort records that a page could not be read.
func (w *window) Abort() {
	w.loading, w.peeking, w.lowered = false, false, nil
}

// Peek returns the query for the first task behind the watermark, unless something is
// being read or was left out, or everything was just read anew: that may be in vain.
func (w *window) Peek() (store.WindowQuery, bool) {
	if w.loading || w.Full || w.anew {
		return store.WindowQuery{}, false
	}
	w.loading, w.peeking, w.goal, w.heard, w.lowered = true, true, math.MinInt64, store.MaxDue+1, nil
	return store.WindowQuery{After: w.Mark, To: store.MaxDue, Limit: 1}, true
}

// Peeked records the first task behind the watermark; nil: there is none.
func (w *window) Peeked(first *store.Entry) {
	w.loading, w.peeking = false, false
	if w.lowered != nil {
		w.lowered = nil // Lower has moved the watermark
		return
	}
	w.Clear = w.heard
	if first != nil {
		w.Clear = min(w.Clear, first.Due)
	}
}

// Later records that a task became pending that is not taken in.
func (w *window) Later(due store.Millis) {
	if w.Clear > due {
		w.Clear = due
	}
	if w.peeking && w.heard > due {
		w.heard = due
	}
}

// Doubt forgets what was peeked at.
func (w *window) Doubt() {
	w.Clear = 0
	if w.peeking {
		w.heard = 0
	}
}

// Advance moves the watermark up to goal, as far as no task is pending there.
func (w *window) Advance(goal store.Millis) {
	if to := min(goal+1, w.Clear); w.Clear != 0 && !w.loading && to > w.Mark.Due {
		w.Mark = store.Entry{Due: to}
	}
}

// Reset forgets everything: the next page starts at the oldest task.
func (w *window) Reset() {
	w.Mark, w.Full, w.Clear, w.lowered = store.Entry{Due: math.MinInt64}, true, 0, nil
	if w.loading {
		w.lowered = &store.Entry{Due: math.MinInt64}
	}
}

// leftOut is the first due time after soon of what was left out, or before, if that is sooner.
func (w *window) leftOut(soon, before store.Millis) store.Millis {
	if w.Full && w.Mark.Due > soon {
		return min(before, w.Mark.Due)
	}
	return before
}

// Hungry reports whether something was left out and there is room for it again.
func (w *window) Hungry(inWheel, ready int) bool {
	return w.Full && !w.loading && inWheel < w.Wheel/2+1 && ready < w.Ready/2+1
}

// hasRoom reports whether there is room for a page while this much is there. What is ready of keys
// that have nothing may stay for long, what is in the wheel does not.
func (w *window) hasRoom(all load) bool {
	return all.wheel < w.Wheel/2+1 && w.mayBeReady(all)
}

// mayBeReady is hasRoom for tasks that are due, which need no room in the wheel.
func (w *window) mayBeReady(all load) bool { return all.ready < w.Ready-w.Ready/16 }

// Wants reports whether something was left out that is to be read now: of all that counts for the
// window, lanes inside it have the limited ones.
func (w *window) Wants(soon store.Millis, all load, limited int) bool {
	ready := all.ready - limited
	return w.Hungry(all.wheel, ready) && w.hasRoom(all) || w.Owes(soon, ready) && w.mayBeReady(all)
}

// Soon is until when what was left out needs no room in the wheel. It is half of the spare time,
// so that not each millisecond brings something.
func (w *window) Soon(now store.Millis) store.Millis { return now + w.Spare/2 }

// Owes reports whether what was left out needs no room in the wheel any more, and there is
// room among the ready ones.
func (w *window) Owes(soon store.Millis, ready int) bool {
	return w.Full && !w.loading && w.Mark.Due <= soon && ready < w.Ready/2+1
}
