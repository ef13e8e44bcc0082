package smooth

import (
	"math"
	"sync"

	"github.com/ddq-io/ddq/store"
)

const (
	smoothSlot  = 100                // milliseconds
	smoothSlots = 6000               // counted: ten minutes
	smoothTries = 4                  // slots that are compared for one task
	goldenRatio = 0.6180339887498949 // what it is multiples of fill a window most evenly
)

// Smoother spreads the tasks of a topic over the times that they leave open. Each gets
// the next of a sequence of places that fill any window evenly from the first task on;
// of a few of these the one in the slot that has got the fewest tasks, as far as this
// node has counted: it keeps a count for each tenth of a second of ten minutes, which is
// all its memory. Nodes do not talk about it: sequences that begin at different places
// fill a window evenly together, too.
type Smoother struct {
	mu     sync.Mutex
	at     float64 // of the sequence, in [0, 1); guarded by mu, as all
	counts []uint32
	slots  []int64 // the slot that a count is of
}

// Place returns when to run a task that may run at any time from earliest to latest.
func (s *Smoother) Place(earliest, latest store.Millis, start float64) store.Millis {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.at, s.counts, s.slots = start, make([]uint32, smoothSlots), make([]int64, smoothSlots)
	}
	best, fewest := earliest, uint32(math.MaxUint32)
	from := s.at
	for k := range smoothTries {
		at := from + float64(k)*goldenRatio
		at -= math.Floor(at)
		due := earliest + store.Millis(at*float64(latest-earliest+1))
		if n := s.count(due); n < fewest {
			best, fewest = due, n
		}
	}
	s.at = from + goldenRatio
	s.at -= math.Floor(s.at)
	s.counts[s.index(best)]++
	return best
}

// index is where the count of a moment is kept. A count of another slot is over: what
// is farther apart than the counts are long is not compared.
func (s *Smoother) index(due store.Millis) int64 {
	slot := int64(due) / smoothSlot
	i := ((slot % smoothSlots) + smoothSlots) % smoothSlots
	if s.slots[i] != slot {
		s.slots[i], s.counts[i] = slot, 0
	}
	return i
}

func (s *Smoother) count(due store.Millis) uint32 { return s.counts[s.index(due)] }
