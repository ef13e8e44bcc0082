package actors

import (
	"slices"
	"strconv"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer"
)

// held are the holds that a shard knows of, by task and by the millisecond in which
// they run out. Those taken together run out together: the wheel has one entry for
// all of them, and a hold that ends in time is only counted out.
type held struct {
	byID  map[string]*hold
	ends  map[store.Millis]*ending
	queue *timer.Queue // of the milliseconds in ends
}

// ending are the holds that run out in one millisecond. Some of them have ended or
// moved on: then their own ending is another one.
type ending struct {
	ms    store.Millis
	holds []*hold
	live  int
}

// newHeld returns no holds. The queue tells the shard when to take.
func newHeld(q *timer.Queue) held {
	return held{byID: make(map[string]*hold), ends: make(map[store.Millis]*ending), queue: q}
}

func (hs *held) len() int { return len(hs.byID) }

// get returns the hold of a task under a token, nil when it has none or another one.
func (hs *held) get(id string, token store.Token) *hold {
	if h := hs.byID[id]; h != nil && h.token == token {
		return h
	}
	return nil
}

// add takes in a hold, in the place of any other one of its task.
func (hs *held) add(h *hold) {
	if old := hs.byID[h.id]; old != nil {
		hs.leave(old)
	}
	hs.byID[h.id] = h
	hs.arm(h)
}

// remove forgets a hold.
func (hs *held) remove(h *hold) {
	delete(hs.byID, h.id)
	hs.leave(h)
}

// move gives a hold another deadline.
func (hs *held) move(h *hold, deadline store.Millis) {
	if h.ending != nil && h.deadline == deadline {
		return
	}
	hs.leave(h)
	h.deadline = deadline
	hs.arm(h)
}

// take returns the holds that run out in a millisecond. They stay, without a timer.
func (hs *held) take(ms store.Millis) []*hold {
	hs.queue.Take(int64(ms))
	e := hs.ends[ms]
	if e == nil {
		return nil
	}
	delete(hs.ends, ms)
	e.compact()
	for _, h := range e.holds {
		h.ending = nil
	}
	return e.holds
}

// close forgets everything.
func (hs *held) close() {
	hs.queue.Close()
	clear(hs.byID)
	clear(hs.ends)
}

// arm sees to it that the wheel tells of the hold's end.
func (hs *held) arm(h *hold) {
	e := hs.ends[h.deadline]
	if e == nil {
		e = &ending{ms: h.deadline}
		hs.ends[e.ms] = e
		hs.queue.Insert(e.name(), int64(e.ms))
	}
	h.ending = e
	e.holds = append(e.holds, h)
	e.live++
}

func (hs *held) leave(h *hold) {
	e := h.ending
	if e == nil {
		return
	}
	h.ending = nil
	e.live--
	switch {
	case e.live == 0:
		delete(hs.ends, e.ms)
		hs.queue.Remove(e.name())
	case len(e.holds) > 4*e.live: // so that a slow task does not keep the others of its batch
		e.compact()
	}
}

func (e *ending) compact() {
	e.holds = slices.DeleteFunc(e.holds, func(h *hold) bool { return h.ending != e })
}

func (e *ending) name() string { return strconv.FormatInt(int64(e.ms), 10) }
