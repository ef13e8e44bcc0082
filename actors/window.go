package actors

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
	mark    store.Entry  // loaded up to here; an empty ID: only what is due before
	loading bool         // a page is being read
	goal    store.Millis // the page's upper bound
	lowered *store.Entry // lowered while a page was being read
	full    bool         // something did not fit: load again when there is room
	wheel   int          // most tasks waiting in the wheel
	ready   int          // most ready tasks
	spare   store.Millis // tasks due this soon are taken in above the wheel's budget
}

// covers reports whether a task that became pending must be taken in: what lies
// beyond the watermark the loader will find.
func (w *window) covers(due store.Millis) bool {
	if w.loading && due <= w.goal {
		return true
	}
	return due < w.mark.Due || due == w.mark.Due && w.mark.ID != ""
}

// fits reports whether a task may be taken in while inWheel and ready others
// are. One that may not lowers the watermark.
func (w *window) fits(due, now store.Millis, inWheel, ready int) bool {
	if due <= now && ready < w.ready || due > now && inWheel < w.wheel || due > now && due <= now+w.spare {
		return true
	}
	w.lower(due)
	return false
}

// lower puts the watermark before everything due at due or later.
func (w *window) lower(due store.Millis) {
	w.full = true
	if w.mark.Due >= due {
		w.mark = store.Entry{Due: due}
	}
	if w.loading && (w.lowered == nil || due < w.lowered.Due) {
		w.lowered = &store.Entry{Due: due}
	}
}

// begin returns the next page to read, up to goal, unless one is being read or
// all is known already.
func (w *window) begin(goal store.Millis, limit int) (store.WindowQuery, bool) {
	if w.loading || w.mark.Due > goal {
		return store.WindowQuery{}, false
	}
	w.loading, w.goal, w.full, w.lowered = true, goal, false, nil
	return store.WindowQuery{After: w.mark, To: goal, Limit: limit}, true
}

// end takes in that a page was read: its last entry, and whether more follow.
// It is called before the page's tasks are offered to fits.
func (w *window) end(last store.Entry, more bool) {
	w.loading = false
	w.mark = store.Entry{Due: w.goal + 1}
	if more {
		w.mark = last
	}
	if w.lowered != nil && w.lowered.Due <= w.mark.Due {
		w.mark = *w.lowered
	}
	w.lowered = nil
}

// abort takes in that a page could not be read.
func (w *window) abort() {
	w.loading, w.lowered = false, nil
}

// reset forgets everything: the next page starts at the oldest task.
func (w *window) reset() {
	w.mark, w.full, w.lowered = store.Entry{Due: math.MinInt64}, true, nil
	if w.loading {
		w.lowered = &store.Entry{Due: math.MinInt64}
	}
}

// hungry reports whether something was left out and there is room for it again.
func (w *window) hungry(inWheel, ready int) bool {
	return w.full && !w.loading && inWheel < w.wheel/2+1 && ready < w.ready/2+1
}
