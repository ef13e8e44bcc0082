package service

import (
	"math"
	"sync"
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
)

const (
	smoothSlot  = 100                // milliseconds
	smoothSlots = 6000               // counted: ten minutes
	smoothTries = 4                  // slots that are compared for one task
	goldenRatio = 0.6180339887498949 // what it is multiples of fill a window most evenly
)

// smoother spreads the tasks of a topic over the times that they leave open. Each gets
// the next of a sequence of places that fill any window evenly from the first task on;
// of a few of these the one in the slot that has got the fewest tasks, as far as this
// node has counted: it keeps a count for each tenth of a second of ten minutes, which is
// all its memory. Nodes do not talk about it: sequences that begin at different places
// fill a window evenly together, too.
type smoother struct {
	mu     sync.Mutex
	at     float64 // of the sequence, in [0, 1); guarded by mu, as all
	counts []uint32
	slots  []int64 // the slot that a count is of
}

// place returns when to run a task that may run at any time from earliest to latest.
func (s *smoother) place(earliest, latest store.Millis, start float64) store.Millis {
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
func (s *smoother) index(due store.Millis) int64 {
	slot := int64(due) / smoothSlot
	i := ((slot % smoothSlots) + smoothSlots) % smoothSlots
	if s.slots[i] != slot {
		s.slots[i], s.counts[i] = slot, 0
	}
	return i
}

func (s *smoother) count(due store.Millis) uint32 { return s.counts[s.index(due)] }

// smooth moves the due time of a task to where it is needed least.
func (r *router) smooth(t *NewTask, topic *store.Topic, now store.Millis) *problem.Error {
	if err := t.checkSlack(t.Task.Due, topic, now); err != nil {
		return err
	}
	latest := t.latest(t.Task.Due)
	earliest := min(max(t.Task.Due, now), latest)
	if ref, open := r.node.Topics().Opened(topic.Name); open {
		t.Task.Due = intakeOf(ref).smooth.place(earliest, latest, r.node.Random())
	}
	return nil
}

// checkSlack checks how much later than its due time a task may run.
func (t *NewTask) checkSlack(earliest store.Millis, topic *store.Topic, now store.Millis) *problem.Error {
	switch {
	case t.Slack < 0:
		return problem.BadField("slack", "BAD_DELAY", "slack must not be negative")
	case t.Latest != 0 && t.Latest < earliest:
		return problem.BadField("latest_time", "BAD_TIME", "latest_time must not be before the due time")
	case t.latest(earliest)-now > store.Millis(topic.MaxDelay.Milliseconds()):
		field := "slack"
		if t.Latest != 0 {
			field = "latest_time"
		}
		return &problem.Error{Kind: problem.OutOfRange, Reason: "DELAY_TOO_LONG", Field: field,
			Message: field + " is farther ahead than the topic's max delay of " + topic.MaxDelay.String()}
	}
	return nil
}

// latest is when the task may run at the latest.
func (t *NewTask) latest(earliest store.Millis) store.Millis {
	if t.Latest != 0 {
		return t.Latest
	}
	return earliest.Add(min(t.Slack, math.MaxInt64-time.Millisecond))
}
