package shard

import (
	"time"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/store"
)

// second is that of due times.
const second = store.Millis(time.Second / time.Millisecond)

// dueSoon counts the tasks on the wheel by the second that they come due in, and says how
// far the shard has read ahead, in whole seconds.
func (s *Actor) dueSoon() fleet.DueSoon {
	now, known := s.Now(), s.tasks.KnownUntil()
	from := now - now%second
	until := max(from, min(known-known%second, from+fleet.DueSeconds*second))
	counts := make([]int64, fleet.DueSeconds)
	s.loader.wheel.Count(from, second, counts)
	for len(counts) > 0 && counts[len(counts)-1] == 0 {
		counts = counts[:len(counts)-1]
	}
	return fleet.DueSoon{From: from, Until: until, Counts: counts}
}
