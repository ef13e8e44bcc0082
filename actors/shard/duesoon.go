package shard

import (
	"time"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/store"
)

// second is that of due times.
const second = store.Millis(time.Second / time.Millisecond)

// dueSoon counts the tasks on the wheel by the second that they come due in, as far as the
// shard has read ahead.
func (s *Actor) dueSoon() fleet.DueSoon {
	now := s.Now()
	from := now - now%second
	until := min(s.tasks.KnownUntil(), from+fleet.DueSeconds*second)
	if until <= from {
		return fleet.DueSoon{}
	}
	counts := make([]int64, (until-from+second-1)/second)
	s.loader.wheel.Count(from, second, counts)
	for len(counts) > 0 && counts[len(counts)-1] == 0 {
		counts = counts[:len(counts)-1]
	}
	return fleet.DueSoon{From: from, Until: until, Counts: counts}
}
