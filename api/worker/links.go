package worker

import (
	"slices"
	"time"
)

// join makes l speak for the subscription, beside those that do already. What
// nobody could say is said, and holds that nobody answers for are confirmed.
func (s *subscription) join(l *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.attached = true
	s.links, s.credits = append(s.links, l), append(s.credits, &l.credit)
	s.agree()
	rest := s.settle
	s.settle = nil
	for _, h := range rest {
		s.say(h)
	}
	s.confirm()
	poke(l.wake)
}

// leave ends that l speaks for the subscription; false means that it did not.
// What it did not say others say, or those that come.
func (s *subscription) leave(l *link) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.links, l)
	if i < 0 {
		return false
	}
	s.links, s.credits = slices.Delete(s.links, i, i+1), slices.Delete(s.credits, i, i+1)
	l.attached, l.draining = false, true
	l.void()
	rest := l.settle
	l.settle, l.extend = nil, nil
	for _, h := range rest {
		s.say(h)
	}
	s.agree()
	s.wake()
	return true
}

// reclaim has said again what the server of l, which has left, did not answer: a
// token settles once, however often it is sent.
func (s *subscription) reclaim(l *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sequence, f := range s.unanswered {
		if f.link != l {
			continue
		}
		delete(s.unanswered, sequence)
		for _, h := range f.settled {
			h.repeated = true
			s.say(h)
		}
	}
	l.asked = 0
	s.confirm()
}

// agree makes the limit what every server agreed to; mu is held.
func (s *subscription) agree() {
	s.limit = s.cfg.MaxInFlight
	for _, l := range s.links {
		if l.limit > 0 {
			s.limit = min(s.limit, l.limit)
		}
	}
	if s.limit < s.lowered && s.adaptive == nil {
		s.lowered = s.limit
		s.cfg.Logger.Warn("max in flight lowered", "topic", s.topic, "asked", s.cfg.MaxInFlight, "most", s.limit)
	}
}

// confirm has the holds of sessions that left confirmed elsewhere; mu is held.
func (s *subscription) confirm() {
	if len(s.links) == 0 {
		return
	}
	now, moved := time.Now(), false
	for _, h := range s.live {
		if !h.via.attached {
			h.via, h.asked, h.extendAt, moved = s.anyone(), false, now, true
		}
	}
	if moved {
		s.arm(now)
	}
}

// anyone returns a session that speaks, if possible one that goes on; mu is held.
func (s *subscription) anyone() *link { return s.another(nil) }

// another returns a session that speaks and is not l, which serves when there is
// no other; mu is held.
func (s *subscription) another(l *link) *link {
	for _, other := range s.links {
		if other != l && !other.draining {
			return other
		}
	}
	if l == nil && len(s.links) > 0 {
		return s.links[0]
	}
	return l
}

// say sends the outcome of h where it came from, or by whoever speaks; mu is held.
func (s *subscription) say(h *held) {
	if !h.via.attached {
		other := s.anyone()
		if other == nil {
			s.settle = append(s.settle, h)
			return
		}
		h.via = other
	}
	h.via.settle = append(h.via.settle, h)
	s.stirUp(h.via)
}

// takeUnsaid removes the outcomes that wait for somebody to say them.
func (s *subscription) takeUnsaid() []*held {
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := s.settle
	s.settle = nil
	return rest
}

// ask asks for more of h's hold, if anybody can; mu is held. Where the question
// before it found no answer, another is asked.
func (s *subscription) ask(h *held) {
	if h.asked {
		h.via = s.another(h.via)
	}
	if l := h.via; l.attached {
		l.extend, h.asked = append(l.extend, h), true
		s.stirUp(l)
	}
}

// heardOut reports whether l has every answer that it waits for.
func (s *subscription) heardOut(l *link) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.allAnswered(l)
}

// allAnswered reports whether all outcomes were answered that were sent on l, on
// any session when l is nil; mu is held. Extends do not count: nothing depends on
// them any more.
func (s *subscription) allAnswered(l *link) bool {
	for _, f := range s.unanswered {
		if len(f.settled) > 0 && (l == nil || f.link == l) {
			return false
		}
	}
	return true
}

// spent reports whether l drains and has nothing more to say: the server need
// not wait for it.
func (s *subscription) spent(l *link) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !l.draining || len(l.settle) > 0 || !s.allAnswered(l) {
		return false
	}
	mine := func(h *held) bool { return h.via == l }
	return !slices.ContainsFunc(s.live, mine) &&
		!slices.ContainsFunc(s.later, func(p postponed) bool { return mine(p.h) })
}

// drained stops taking from l, and reports whether that is new.
func (s *subscription) drained(l *link) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.draining {
		return false
	}
	l.draining = true
	s.releaseWaiting(l)
	poke(l.wake) // there may be nothing to wait for
	return true
}

// demanded records what the server of l says of its ready tasks.
func (s *subscription) demanded(l *link, ready, returned int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.demand(ready, returned)
	s.wake()
}

// wake sees to it that room which may have come is granted; mu is held.
func (s *subscription) wake() {
	s.share()
	for _, l := range s.links {
		switch {
		case !l.onDemand:
			s.stirUp(l)
		case l.unsent > 0:
			poke(l.wake)
		}
	}
}

// stirUp tells l that there is something to send; mu is held.
func (s *subscription) stirUp(l *link) {
	if l.quiet && s.patient(l) {
		return
	}
	poke(l.wake)
}

// patient reports whether what there is to say on l can wait for the answer to what was said
// last; mu is held. It cannot when the server is about to run out of credit: then tasks would
// wait with it.
func (s *subscription) patient(l *link) bool {
	return l.pace.patient(len(l.settle)) && len(l.extend) == 0 && !s.stopping && !l.draining && !s.short(&l.credit)
}
