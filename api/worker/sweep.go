package worker

import (
	"cmp"
	"slices"
	"time"
)

// sweepUntil extends the holds whose time has come, gives up those that ran
// out, and sends again what was postponed. It sleeps while nothing is held.
func (s *subscription) sweepUntil(done <-chan struct{}) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-done:
			return
		case <-s.armed:
		case <-timer.C:
		}
		if next := s.sweep(time.Now()); next.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(time.Until(next))
		}
	}
}

// sweep does what is due at now and returns when to come again, zero for never.
func (s *subscription) sweep(now time.Time) (next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resend(now)
	next = s.giveBackSurplus(now)
	var out []*held
	for _, h := range s.live {
		if !now.Before(h.deadline) {
			out = append(out, h)
			continue
		}
		next = earlier(next, s.keepUp(h, now))
	}
	for _, h := range out {
		s.lose(h, "it ran out before it was extended")
	}
	for i, p := range s.later {
		next = earlier(next, p.at)
		// As many as may be in hand: what is put off takes no place there, and might be ever more.
		if i < s.cfg.MaxInFlight && now.Before(p.h.deadline) {
			next = earlier(next, s.keepUp(p.h, now))
		}
	}
	s.nextSweep = next
	return next
}

// keepUp asks for more of h's hold when it is time, and returns when to look again; mu is held.
func (s *subscription) keepUp(h *held, now time.Time) (next time.Time) {
	// A little early is harmless, and saves a sweep for each task.
	if slack := h.hold / 12; !now.Add(slack).Before(h.extendAt) {
		s.ask(h)
		h.extendAt = now.Add(h.hold / 3) // until the answer says better
	}
	return earlier(h.extendAt, h.deadline)
}

// resend moves the postponed outcomes whose time has come; mu is held.
func (s *subscription) resend(now time.Time) {
	kept := s.later[:0]
	for _, p := range s.later {
		if now.Before(p.at) {
			kept = append(kept, p)
		} else {
			p.h.later = false
			s.say(p.h)
		}
	}
	clear(s.later[len(kept):])
	s.later = kept
}

// giveBackSurplus releases what waits and handlers will not come to soon, what came last
// first, and returns when to look again, zero for never; mu is held.
func (s *subscription) giveBackSurplus(now time.Time) (next time.Time) {
	if s.adaptive == nil {
		return next
	}
	n := s.adaptive.look(now, int(s.waiting.Load()))
	if n > 0 {
		latest := slices.SortedFunc(slices.Values(s.live), func(a, b *held) int { return cmp.Compare(b.number, a.number) })
		for _, h := range latest {
			if n > 0 && s.release(h) {
				n--
			}
		}
	}
	if s.waiting.Load() > 0 {
		next = now.Add(lookSpan)
	}
	return next
}

// arm sees to it that the sweeper looks no later than at; mu is held.
func (s *subscription) arm(at time.Time) {
	if !s.nextSweep.IsZero() && !at.Before(s.nextSweep) {
		return
	}
	s.nextSweep = at
	poke(s.armed)
}

// earlier returns the earlier of two times, of which a zero one is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
