package pulse

import (
	"time"

	"github.com/ddq-io/ddq/store"
)

// span is how far back is counted, and in which steps.
type span struct {
	step  store.Millis
	steps int64
	parts int64 // of the span, each with a distribution of lateness
}

// What is counted. Percentiles are of a quarter of the span too much at the most.
var (
	lastMinute = span{step: 5_000, steps: 12, parts: 4}
	lastHour   = span{step: 60_000, steps: 60, parts: 4}
)

// Kept is for how long a pulse reports what has happened.
const Kept = store.Millis(time.Hour / time.Millisecond)

func (s *span) length() store.Millis { return s.step * store.Millis(s.steps) }

// ring counts the events of a span. A slot is used again for a later step, and says whose it is.
type ring struct {
	span
	slots []slot // one more than there are steps: the present one is not over
	late  lateness
}

// slot is one step.
type slot struct {
	number uint32 // of the step, counted from the epoch
	counts [Events]uint32
	latest uint32 // the greatest lateness of its deliveries, in ms
}

func newRing(s span) ring {
	return ring{span: s, slots: make([]slot, s.steps+1), late: newLateness(s)}
}

// at is the slot of a moment, empty when its step has just begun.
func (r *ring) at(now store.Millis) *slot {
	number := int64(now / r.step)
	s := &r.slots[number%int64(len(r.slots))]
	if s.number != uint32(number) { //nolint:gosec // see slot
		*s = slot{number: uint32(number)} //nolint:gosec // the same
	}
	return s
}

func (r *ring) count(now store.Millis, t *Tally) {
	s := r.at(now)
	for e, n := range t {
		s.counts[e] += uint32(n) //nolint:gosec // it is never negative
	}
}

func (r *ring) deliver(now store.Millis, late *runs) {
	s := r.at(now)
	s.counts[Delivered] += uint32(late.n)                       //nolint:gosec // it is never negative
	s.latest = max(s.latest, uint32(min(late.latest, longest))) //nolint:gosec // it is within its bounds
	d := r.late.at(now)
	for ms, n := range late.short {
		if n > 0 {
			d.Record(int64(ms), int64(n))
		}
	}
	for _, ms := range late.long {
		d.Record(int64(ms), 1)
	}
}

// window reads the steps that are over.
func (r *ring) window(now store.Millis) Window {
	w := newWindow(r.span, now)
	first := int64(w.From / r.step)
	for i := range r.steps {
		s := &r.slots[(first+i)%int64(len(r.slots))]
		if int64(s.number) != first+i {
			continue
		}
		for e, n := range s.counts {
			w.add(Event(e), int(i), int64(n))
		}
		w.later(int(i), int64(s.latest))
	}
	present := r.at(now)
	w.Max = max(w.Max, int64(present.latest))
	if w.Counts[Delivered] != nil || present.counts[Delivered] > 0 {
		w.Late = r.late.of(now)
	}
	return w
}
