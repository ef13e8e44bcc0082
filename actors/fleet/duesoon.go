package fleet

import (
	"time"

	"github.com/ddq-io/ddq/store"
)

// DueSeconds is for how many seconds from now nodes count what comes due.
const DueSeconds = 60

// DueSoon is how many tasks of a shard come due in each of the next seconds, as far as its
// owner knows of them.
type DueSoon struct {
	From   store.Millis // the first second begins
	Until  store.Millis // all that is due before is counted: the end of a second; 0: nobody counted
	Counts []int64      // by second; from Until on perhaps too few, and behind the last none
}

// second is that of due times.
const second = store.Millis(time.Second / time.Millisecond)

// CountDueSoon counts tasks by the second that they come due in, from now on and as far as is known. The wheel of
// them counts for each of some periods.
func CountDueSoon(now, known store.Millis, wheel interface {
	Count(from, period store.Millis, counts []int64)
}) DueSoon {
	from := now - now%second
	until := max(from, min(known-known%second, from+DueSeconds*second))
	counts := make([]int64, DueSeconds)
	wheel.Count(from, second, counts)
	for len(counts) > 0 && counts[len(counts)-1] == 0 {
		counts = counts[:len(counts)-1]
	}
	return DueSoon{From: from, Until: until, Counts: counts}
}
