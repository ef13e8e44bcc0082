package timer

import (
	"log/slog"
	"maps"
	"slices"
	"time"
)

// NewManual returns a wheel that somebody else turns: it has no goroutine, and
// nothing comes due but within Fire. It is for simulations. Now must not be nil.
func NewManual(now func() time.Time) *Wheel {
	return &Wheel{
		now:   now,
		log:   slog.New(slog.DiscardHandler),
		turn:  manualTurn,
		quit:  make(chan struct{}),
		slots: newRegistry(leastSlots),
	}
}

// Next returns the millisecond in which the first queue has entries, on the clock of
// the wheel. It is for wheels made by NewManual.
func (w *Wheel) Next() (ms int64, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.slots.pages {
		for n, s := range p.stretches {
			if at, used := s.first(n); used && (!ok || at < ms) {
				ms, ok = at, true
			}
		}
	}
	return ms, ok
}

// Fire notifies every slot that is due by Now, in order. It is for wheels made by
// NewManual.
func (w *Wheel) Fire() {
	for _, n := range w.armed() {
		w.tell(n, manualArm)
	}
}

// manualTurn is beyond everything: all that is due is near.
const manualTurn = 100 * 365 * 24 * time.Hour

// manualArm is the arm of every stretch of a wheel that is turned by hand.
const manualArm = 1

func (w *Wheel) armed() []int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []int64
	for _, p := range w.slots.pages {
		all = slices.AppendSeq(all, maps.Keys(p.stretches))
	}
	slices.Sort(all)
	return all
}
