package timer

import (
	"log/slog"
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
	if !w.hand.known {
		w.hand.look(&w.slots)
	}
	return w.hand.next, w.hand.any
}

// hand remembers the next slot of a wheel that is turned by hand, because it is asked
// for all the time.
type hand struct {
	next  int64
	any   bool
	known bool
}

func (h *hand) join(ms int64) {
	if h.known && (!h.any || ms < h.next) {
		h.next, h.any = ms, true
	}
}

func (h *hand) leave(ms int64) { h.known = h.known && ms != h.next }

func (h *hand) look(slots *registry) {
	*h = hand{known: true}
	for _, p := range slots.pages {
		for n, s := range p.stretches {
			if at, used := s.first(n); used && (!h.any || at < h.next) {
				h.next, h.any = at, true
			}
		}
	}
}

// Fire notifies every slot that is due by Now, in order. It is for wheels made by
// NewManual.
func (w *Wheel) Fire() {
	for {
		ms, ok := w.Next()
		if !ok || ms > w.now().UnixMilli() {
			return
		}
		w.tell(stretchOf(ms), manualArm)
	}
}

// manualTurn is beyond everything: all that is due is near.
const manualTurn = 100 * 365 * 24 * time.Hour

// manualArm is the arm of every stretch of a wheel that is turned by hand.
const manualArm = 1
