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
type window struct {
	Mark    store.Entry  // loaded up to here; an empty ID: only what is due before
	loading bool         // a page is being read
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
	if due <= now && ready < w.Ready || due > now && inWheel < w.Wheel || due > now && due <= now+w.Spare {
		return true
	}
	w.Lower(due)
	return false
}

// Lower puts the watermark before everything due at due or later.
func (w *window) Lower(due store.Millis) {
	w.Full = true
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
	if w.loading || w.Mark.Due > goal {
		return store.WindowQuery{}, false
	}
	w.loading, w.goal, w.Full, w.lowered = true, goal, false, nil
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

// Abort records that a page could not be read.
func (w *window) Abort() {
	w.loading, w.lowered = false, nil
}

// Reset forgets everything: the next page starts at the oldest task.
func (w *window) Reset() {
	w.Mark, w.Full, w.lowered = store.Entry{Due: math.MinInt64}, true, nil
	if w.loading {
		w.lowered = &store.Entry{Due: math.MinInt64}
	}
}

// Hungry reports whether something was left out and there is room for it again.
func (w *window) Hungry(inWheel, ready int) bool {
	return w.Full && !w.loading && inWheel < w.Wheel/2+1 && ready < w.Ready/2+1
}

// Owes reports whether what was left out is due by now and there is room for it: it needs none
// in the wheel.
func (w *window) Owes(now store.Millis, ready int) bool {
	return w.Full && !w.loading && w.Mark.Due <= now && ready < w.Ready/2+1
}
