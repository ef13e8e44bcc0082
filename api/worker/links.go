package worker

import (
	"slices"
	"time"

	"github.com/ddq-io/ddq/api/ddqv1"
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
	unheard(l.journal)
	rest := l.settle
	l.settle, l.extend, l.journal = nil, nil, nil
	for _, h := range rest {
		s.say(h)
	}
	s.agree()
	s.wake()
	return true
}

// reclaim has said again what the server of l, which has left, did not answer: a
// token settles once, however often it is sent. Where one of the outcomes may have
// broken the stream, each goes alone; one that breaks the next stream, too, is failed.
func (s *subscription) reclaim(l *link, broken error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sequence, f := range s.unanswered {
		if f.link != l {
			continue
		}
		delete(s.unanswered, sequence)
		unheard(f.kept)
		for _, h := range f.settled {
			h.repeated = true
			if broken != nil && f.alone && !s.condemn(h, broken) {
				continue
			}
			s.suspect(h, broken != nil)
			s.say(h)
		}
	}
	l.asked = 0
	s.confirm()
}

// condemn makes an outcome that broke streams a failure of the attempt, which says why; false: it was one
// already, and nobody is told of it any more. mu is held.
func (s *subscription) condemn(h *held, why error) bool {
	if h.nack != nil {
		s.suspect(h, false)
		s.events.report(Event{Kind: Lost, Topic: s.topic, Tasks: 1})
		s.cfg.Logger.Warn("settlement breaks the stream", "topic", s.topic, "task", h.ack.TaskId, "err", why)
		return false
	}
	h.nack = &ddqv1.Nack{TaskId: h.ack.TaskId, HoldToken: h.ack.HoldToken, Error: shorten("the server ends the stream of this ack: " + why.Error())}
	h.ack.Enqueue, h.ack.Grow, h.ack.Result = nil, nil, nil
	return true
}

// suspect notes whether h may break the stream that it goes on; mu is held.
func (s *speakers) suspect(h *held, is bool) {
	if h.suspect == is {
		return
	}
	if h.suspect = is; is {
		s.suspects++
	} else {
		s.suspects--
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

// spent reports whether l drains and has nothing more to say: the server need
// not wait for it.
func (s *subscription) spent(l *link) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !l.draining || len(l.settle)+len(l.journal) > 0 || !s.allAnswered(l) {
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
