package worker

import (
	"slices"
	"sync"
	"time"
)

// join makes x speak for the subscription, beside those that do already. What
// nobody could say is said, and holds that nobody answers for are confirmed.
func (s *subscription) join(x *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x.attached = true
	s.sessions, s.credits = append(s.sessions, x), append(s.credits, &x.credit)
	s.agree()
	rest := s.settle
	s.settle = nil
	for _, h := range rest {
		s.say(h)
	}
	s.confirm()
	poke(x.wake)
}

// leave ends that x speaks for the subscription; false means that it did not.
// What it did not say others say, or those that come.
func (s *subscription) leave(x *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.sessions, x)
	if i < 0 {
		return false
	}
	s.sessions, s.credits = slices.Delete(s.sessions, i, i+1), slices.Delete(s.credits, i, i+1)
	x.attached, x.draining = false, true
	x.void()
	rest := x.settle
	x.settle, x.extend = nil, nil
	for _, h := range rest {
		s.say(h)
	}
	s.agree()
	s.wake()
	return true
}

// reclaim has said again what the server of x, which has left, did not answer: a
// token settles once, however often it is sent.
func (s *subscription) reclaim(x *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sequence, f := range s.unanswered {
		if f.x != x {
			continue
		}
		delete(s.unanswered, sequence)
		for _, h := range f.settled {
			h.repeated = true
			s.say(h)
		}
	}
	x.asked = 0
	s.confirm()
}

// agree makes the limit what every server agreed to; mu is held.
func (s *subscription) agree() {
	s.limit = s.w.cfg.MaxInFlight
	for _, x := range s.sessions {
		if x.limit > 0 {
			s.limit = min(s.limit, x.limit)
		}
	}
	if s.limit < s.lowered && s.adaptive == nil {
		s.lowered = s.limit
		s.w.cfg.Logger.Warn("max in flight lowered", "topic", s.topic, "asked", s.w.cfg.MaxInFlight, "most", s.limit)
	}
}

// confirm has the holds of sessions that left confirmed elsewhere; mu is held.
func (s *subscription) confirm() {
	if len(s.sessions) == 0 {
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
func (s *subscription) anyone() *session { return s.another(nil) }

// another returns a session that speaks and is not x, which serves when there is
// no other; mu is held.
func (s *subscription) another(x *session) *session {
	for _, y := range s.sessions {
		if y != x && !y.draining {
			return y
		}
	}
	if x == nil && len(s.sessions) > 0 {
		return s.sessions[0]
	}
	return x
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

// ask asks for more of h's hold, if anybody can; mu is held. Where the question
// before it found no answer, another is asked.
func (s *subscription) ask(h *held) {
	if h.asked {
		h.via = s.another(h.via)
	}
	if x := h.via; x.attached {
		x.extend, h.asked = append(x.extend, h), true
		s.stirUp(x)
	}
}

// handOver makes x speak for the subscription in place of old, if there is one,
// which is listened to for the answers that it still has, and retired.
func (s *subscription) handOver(old, x *session) {
	left := old != nil && s.leave(old)
	if left {
		s.hearOut(old)
		s.reclaim(old)
	}
	s.join(x)
	if left {
		s.retire(old)
	}
}

// dismiss ends x, unless somebody did, without anything lost that it has to say.
func (s *subscription) dismiss(x *session) {
	if x == nil || !s.leave(x) {
		return
	}
	s.hearOut(x)
	s.reclaim(x)
	s.retire(x)
}

// part ends every session when all is said, and gives back what crosses that.
func (s *subscription) part() {
	s.mu.Lock()
	all := slices.Clone(s.sessions)
	s.mu.Unlock()
	var retiring sync.WaitGroup
	for _, x := range all {
		if s.leave(x) {
			retiring.Go(func() { s.retire(x) })
		}
	}
	retiring.Wait()
	s.handBack()
}

// hearOut waits for the answers that old still has.
func (s *subscription) hearOut(old *session) {
	late := time.NewTimer(hearingTimeout)
	defer late.Stop()
	for !s.heardOut(old) {
		select {
		case <-old.heard:
		case <-old.done:
			return
		case <-late.C:
			return
		}
	}
}

func (s *subscription) heardOut(x *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.allAnswered(x)
}

// allAnswered reports whether all outcomes were answered that were sent on x, on
// any session when x is nil; mu is held. Extends do not count: nothing depends on
// them any more.
func (s *subscription) allAnswered(x *session) bool {
	for _, f := range s.unanswered {
		if len(f.settled) > 0 && (x == nil || f.x == x) {
			return false
		}
	}
	return true
}

// spent reports whether x drains and has nothing more to say: the server need
// not wait for it.
func (s *subscription) spent(x *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !x.draining || len(x.settle) > 0 || !s.allAnswered(x) {
		return false
	}
	mine := func(h *held) bool { return h.via == x }
	return !slices.ContainsFunc(s.live, mine) &&
		!slices.ContainsFunc(s.later, func(p postponed) bool { return mine(p.h) })
}

// demanded records what the server of x says of its ready tasks.
func (s *subscription) demanded(x *session, ready, returned int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x.demand(ready, returned)
	s.wake()
}

// wake sees to it that room which may have come is granted; mu is held.
func (s *subscription) wake() {
	s.share()
	for _, x := range s.sessions {
		switch {
		case !x.onDemand:
			s.stirUp(x)
		case x.unsent > 0:
			poke(x.wake)
		}
	}
}

// stirUp tells x that there is something to send; mu is held.
func (s *subscription) stirUp(x *session) {
	if x.quiet && s.patient(x) {
		return
	}
	poke(x.wake)
}

// patient reports whether what there is to say on x can wait for the answer to what was said
// last; mu is held. It cannot when the server is about to run out of credit: then tasks would
// wait with it.
func (s *subscription) patient(x *session) bool {
	return x.pace.patient(len(x.settle)) && len(x.extend) == 0 && !s.stopping && !x.draining && !s.short(&x.credit)
}
