package actors

import (
	"math"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer"
)

// now is the time of the shard's primary. Due times and deadlines are on its clock.
func (s *shard) now() store.Millis { return s.primary.Millis() }

// latest is a moment that neither the clock of the shard's primary has passed, nor that
// of limits.
func (s *shard) latest() store.Millis {
	return max(s.runtime.latest(), CeilMillis(s.primary.Latest()))
}

// shiftSlack is how late, in ms, slots may be before the queues are shifted: that arms
// every slot anew.
const shiftSlack = 2

// newQueue returns a queue of moments of the shard's clock.
func (s *shard) newQueue(notify func(ms int64)) *timer.Queue {
	q := s.wheel.NewQueue(notify)
	q.Shift(s.ahead)
	return q
}

// followClock shifts the queues once the clock of the shard's primary has moved against
// the wheel's.
func (s *shard) followClock() {
	if ahead := s.aheadOfWheel(); ahead < s.ahead || ahead > s.ahead+shiftSlack {
		s.shift(ahead)
	}
}

// tooEarly reports whether a slot fired before its time, and has that not happen again.
func (s *shard) tooEarly(ms int64) bool {
	if s.now() >= store.Millis(ms) {
		return false
	}
	s.shift(s.aheadOfWheel())
	return true
}

func (s *shard) shift(ahead int64) {
	s.ahead = ahead
	for _, q := range []*timer.Queue{s.due, s.deadlines, s.looks} {
		if q != nil {
			q.Shift(ahead)
		}
	}
}

// aheadOfWheel is how far the shard's clock is ahead of the wheel's, in ms rounded down.
func (s *shard) aheadOfWheel() int64 {
	if s.primary == s.clock {
		return 0
	}
	own, _ := s.primary.bounds()
	wheel, _ := s.clock.bounds()
	return int64(math.Floor(float64(own-wheel) / float64(time.Millisecond)))
}

// onClockJump reads the window anew when the shard's clock has jumped, and once more
// with the next of these messages.
func (s *shard) onClockJump() {
	s.followClock()
	if jumps := s.primary.jumped(); jumps != s.jumps {
		s.jumps, s.rereads = jumps, 2
	}
	if s.rereads == 0 {
		return
	}
	s.rereads--
	if s.claim.Owned() {
		s.tasks.Reread()
		s.load()
	}
}
