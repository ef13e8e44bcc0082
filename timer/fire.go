package timer

import "time"

// napLimit is the longest rest that is slept rather than given back to the
// library: a stretch, and a little more for a clock that is being slewed.
const napLimit = (stretchLen + 4) * tick

// fire walks through a stretch: it notifies each slot once that is due by Now,
// and sleeps from one to the next. The library calls it in a goroutine of its
// own, a moment before the first.
func (w *Wheel) fire(n int64, arm uint64) {
	if !w.enter() {
		return
	}
	defer w.fires.Done()
	for {
		next, more := w.tell(n, arm)
		if !more {
			return
		}
		rest := time.UnixMilli(next).Sub(w.now())
		if rest > napLimit {
			w.postpone(n, arm)
			return
		}
		if rest > 0 {
			w.naps.sleep(rest)
		}
	}
}

// enter counts a fire in, unless the wheel is closed.
func (w *Wheel) enter() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.fires.Add(1)
	return true
}

// tell notifies every slot of a stretch that is due by Now, and returns the
// first that is not. There is no more when the stretch is done with, or another
// arm sees to it.
func (w *Wheel) tell(n int64, arm uint64) (next int64, more bool) {
	for {
		due, next, more := w.due(n, arm, w.now())
		if len(due) == 0 {
			return next, more
		}
		for _, slot := range due {
			for _, q := range slot.queues {
				q.tell(slot.ms)
			}
		}
	}
}

// due takes out the slots of a stretch that are due at now. When there is none
// it returns the next one, and forgets the stretch when there is none either.
func (w *Wheel) due(n int64, arm uint64, now time.Time) (due []dueSlot, next int64, more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, s := w.slots.find(n)
	if s == nil || s.arm != arm {
		return nil, 0, false
	}
	if due := s.takeDue(n, now.UnixMilli()); len(due) > 0 {
		w.hand.known = false
		return due, 0, true
	}
	if s.used == 0 {
		w.slots.forget(n)
		return nil, 0, false
	}
	s.next, _ = s.first(n)
	return nil, s.next, true
}

// postpone arms again a stretch that fired far too early: Now has moved since it
// was armed, or the machine's clock has.
func (w *Wheel) postpone(n int64, arm uint64) {
	now := w.now()
	w.mu.Lock()
	defer w.mu.Unlock()
	p, s := w.slots.find(n)
	if s == nil || s.arm != arm {
		return
	}
	if stepped(w.checked, time.Now()) {
		signal(w.suspect)
	}
	if !w.isNear(w.slots.pageOf(n), now) {
		s.arm, p.near = 0, false // a heartbeat will arm it
		return
	}
	w.arm(n, s)
}
