package worker

import (
	"cmp"
	"slices"
	"time"
)

// most is how many tasks may be in flight and granted; mu is held.
func (s *subscription) most() int {
	if s.adaptive == nil {
		return s.limit
	}
	return min(s.limit, s.adaptive.most())
}

// room is how much more may be granted; mu is held.
func (s *subscription) room() int {
	n := s.most() - s.inFlight
	for _, x := range s.sessions {
		n -= x.credit
	}
	return n
}

// grant is what x grants its server in the frame it is about to send; mu is held.
// An ordinary session gives away all the room there is.
func (s *subscription) grant(x *session) int {
	if s.stopping || x.draining {
		x.credit -= x.granting
		x.wants, x.granting = 0, 0
		return 0
	}
	if x.onDemand {
		n := x.granting
		x.granting = 0
		return n
	}
	n := max(s.room()-len(x.settle), 0) // the server still counts what this frame had no room for
	x.credit += n
	return n
}

// demanded records how many tasks are ready at the server of x, and how much
// credit found none.
func (s *subscription) demanded(x *session, ready, returned int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x.credit = max(x.credit-returned, x.granting)
	x.wants = ready
	s.wake()
}

// share gives the room there is to the tasks that are ready, of each server its
// share when there is not enough for all; mu is held.
func (s *subscription) share() {
	room, wanted := 0, 0
	for _, x := range s.sessions {
		wanted += x.wants
	}
	if wanted > 0 && !s.stopping {
		room = s.room()
	}
	for i := range s.sessions {
		if room <= 0 {
			break
		}
		x := s.sessions[(s.turn+i)%len(s.sessions)]
		if x.wants <= 0 || x.draining {
			wanted -= x.wants
			continue
		}
		n := x.wants
		if room < wanted {
			n = (n*room + wanted - 1) / wanted
		}
		wanted -= x.wants
		x.wants -= n
		x.credit += n
		x.granting += n
		room -= n
		poke(x.wake)
	}
	s.turn++
}

// wake sees to it that room which may have come is granted; mu is held.
func (s *subscription) wake() {
	s.share()
	for _, x := range s.sessions {
		if !x.onDemand {
			s.stirUp(x)
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

// adaptTo records deliveries for the limit, and gives those back whose payloads are too many
// bytes in hand; mu is held.
func (s *subscription) adaptTo(batch []held, now time.Time) {
	if s.adaptive == nil {
		return
	}
	for i := range batch {
		s.adaptive.onReceived(now, batch[i].bytes)
	}
	for i := len(batch) - 1; i >= 0 && s.adaptive.overfull(len(s.live), s.bytes); i-- {
		s.release(&batch[i])
	}
	if s.waiting.Load() > 0 {
		s.arm(now.Add(lookSpan))
	}
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
