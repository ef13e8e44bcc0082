package worker

import "sync"

// speakers are the links that speak for a subscription, what they have to say, and what was
// not answered yet. They know tasks as outcomes to send and holds to ask more of, and not
// which there are.
type speakers struct {
	cfg   *settings
	topic string

	mu         sync.Mutex        // of the whole subscription
	links      []*link           // those that speak for the subscription; guarded by mu
	window                       // guarded by mu; its credits are those of links
	lowered    int               // the lowest limit so far, which was said; guarded by mu
	settle     []*held           // outcomes while nobody speaks; guarded by mu
	unanswered map[uint64]*frame // by sequence; guarded by mu
	suspects   int               // outcomes that may break a stream; guarded by mu
	sequence   uint64            // of the last frame with settlements; guarded by mu
}

// agree makes the limit what every server agreed to; mu is held.
func (s *speakers) agree() {
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

// anyone returns a session that speaks, if possible one that goes on; mu is held.
func (s *speakers) anyone() *link { return s.another(nil) }

// another returns a session that speaks and is not l, which serves when there is
// no other; mu is held.
func (s *speakers) another(l *link) *link {
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
func (s *speakers) say(h *held) {
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
func (s *speakers) takeUnsaid() []*held {
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := s.settle
	s.settle = nil
	return rest
}

// sayCheckpoint sends c where its task came from; false means that nobody speaks there.
func (s *speakers) sayCheckpoint(c *checkpoint) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := c.h.via
	if !l.attached {
		return false
	}
	l.journal = append(l.journal, c)
	s.stirUp(l)
	return true
}

// ask asks for more of h's hold, if anybody can; mu is held. Where the question
// before it found no answer, another is asked.
func (s *speakers) ask(h *held) {
	if h.asked {
		h.via = s.another(h.via)
	}
	if l := h.via; l.attached {
		l.extend, h.asked = append(l.extend, h), true
		s.stirUp(l)
	}
}

// heardOut reports whether l has every answer that it waits for.
func (s *speakers) heardOut(l *link) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.allAnswered(l)
}

// allAnswered reports whether all outcomes and checkpoints were answered that were sent on l, on
// any session when l is nil; mu is held. Extends do not count: nothing depends on
// them any more.
func (s *speakers) allAnswered(l *link) bool {
	for _, f := range s.unanswered {
		if len(f.settled)+len(f.kept) > 0 && (l == nil || f.link == l) {
			return false
		}
	}
	return true
}

// demanded records what the server of l says of its ready tasks.
func (s *speakers) demanded(l *link, ready, returned int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.demand(ready, returned)
	s.wake()
}

// wake sees to it that room which may have come is granted; mu is held.
func (s *speakers) wake() {
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
func (s *speakers) stirUp(l *link) {
	if l.quiet && s.patient(l) {
		return
	}
	poke(l.wake)
}

// patient reports whether what there is to say on l can wait for the answer to what was said
// last; mu is held. It cannot when the server is about to run out of credit: then tasks would
// wait with it.
func (s *speakers) patient(l *link) bool {
	return l.pace.patient(len(l.settle)) && len(l.extend)+len(l.journal) == 0 && !s.stopping && !l.draining && !s.short(&l.credit)
}
