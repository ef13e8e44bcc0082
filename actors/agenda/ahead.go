package agenda

import (
	"math"
	"time"

	"github.com/ddq-io/ddq/store"
)

// ahead is how long before their due times tasks become ready, so that they are held by
// then and what is left is to send them. The holder sees to it that none is sent early.
//
// The wheel tells of a task Lead before its due time, and every task that is due within
// most becomes ready with it: so a trickle is held in few calls. Of many tasks that are due
// in one millisecond it tells earlier, by the time that it takes to hold them.
//
// A task with an ordering key is not held ahead, as its turn is decided at hold. Nor is one
// of which the store said that it is not due, nor any while due tasks wait for a worker:
// these come first.
type ahead struct {
	most   store.Millis                  // 0: tasks become ready when they are due
	cost   float64                       // ms to hold a task of a crowd, as measured; 0: not yet
	crowds map[store.Millis]store.Millis // that the wheel was asked for: due -> when
}

const (
	// leastCrowd is how many tasks of a millisecond are a crowd: fewer are held in a call
	// that takes hardly longer than one of a single task.
	leastCrowd = 64

	firstCost   = 0.1 // ms to hold a task of a crowd, before anything was measured
	leastCost   = 0.005
	mostCost    = 1
	costsWeight = 4 // a measurement counts for one in so many
)

// Lead is how long before its due time the wheel is to tell of a task that may be held
// ahead.
func (s *Shard) Lead() store.Millis { return (s.ahead.most + 1) / 2 }

// HoldAhead sets how long before their due times tasks become ready, 0 for not at all. The
// wheel is to go by the new Lead from then on.
func (s *Shard) HoldAhead(most time.Duration) {
	s.ahead.most = store.Millis(min(most, store.MaxHoldAhead).Milliseconds())
}

// reach is how long before its due time a task may be ready.
func (s *Shard) reach(e store.Entry, ahead store.Millis) store.Millis {
	if e.Traits.Ordering() != "" {
		return 0
	}
	return ahead
}

// tellExactly reports whether the wheel is to tell of a task when it is due, and not
// ahead.
func (s *Shard) tellExactly(e store.Entry, ahead store.Millis) bool {
	return s.ahead.most > 0 && s.reach(e, ahead) == 0
}

// Until is how far slots are to be taken out of the wheel when it tells of one.
func (s *Shard) Until(now store.Millis) store.Millis { return now + s.ahead.most }

// Due makes tasks ready that were in the wheel until now. While others wait for a worker
// (busy), those that are not due yet go back.
func (s *Shard) Due(now store.Millis, es []store.Entry, busy bool) {
	reach := s.ahead.most
	if busy {
		reach = 0
	}
	s.due(now, es, reach)
}

func (s *Shard) due(now store.Millis, es []store.Entry, ahead store.Millis) {
	for _, e := range es {
		if !s.WithTopic(e.ID) {
			e.Traits = s.lanes.Of(e.ID)
			s.lanes.Drop(e.ID)
			s.admit(now, e, ahead)
		}
	}
}

// notDue puts a task back that the store did not hold because it is due later: it becomes
// ready when it is due, as asking ahead of that would be in vain again.
func (s *Shard) notDue(now store.Millis, e store.Entry) {
	if reach := s.reach(e, s.ahead.most); reach == 0 || e.Due > now+reach || s.WithTopic(e.ID) {
		s.Pending(now, e)
		return
	}
	s.unwait(e.ID)
	if s.owned && s.covers(now, e) {
		s.admit(now, e, 0)
	}
}

// wait puts a task into the wheel at the end of the step.
func (s *Shard) wait(e store.Entry, exact bool) {
	to, other := &s.waiting, &s.exact
	if exact {
		to, other = other, to
	}
	if len(*other) > 0 {
		s.insertWaiting() // it may be among those: what comes last counts
	}
	*to = append(*to, e)
}

// expectCrowds has the wheel tell in time of milliseconds in which many tasks are due.
func (s *Shard) expectCrowds(es []store.Entry) {
	if s.ahead.most == 0 {
		return
	}
	last := store.Millis(math.MinInt64)
	for _, e := range es {
		if e.Due != last {
			last = e.Due
			s.expectCrowd(e.Due, s.wheel.At(e.Due))
		}
	}
}

// expectCrowd has the wheel tell in time of n tasks that are due in a millisecond, and
// reports whether that is earlier than it does anyway.
func (s *Shard) expectCrowd(due store.Millis, n int) bool {
	lead := s.crowdLead(n)
	if lead <= s.Lead() {
		return false
	}
	if when := due - lead; s.ahead.crowds[due] != when {
		if s.ahead.crowds == nil {
			s.ahead.crowds = make(map[store.Millis]store.Millis)
		}
		s.ahead.crowds[due] = when
		s.wheel.Crowd(due, when)
	}
	return true
}

// crowdLead is how long before their due time n tasks become ready: as long as it takes to
// hold them, and the lead of any task besides.
func (s *Shard) crowdLead(n int) store.Millis {
	if n < leastCrowd {
		return s.Lead()
	}
	cost := s.ahead.cost
	if cost == 0 {
		cost = firstCost
	}
	lead := s.Lead() + store.Millis(math.Ceil(float64(n)*cost))
	return min(lead, store.Millis(store.MaxHoldAhead.Milliseconds()))
}

// Crowd is called when the wheel tells of a millisecond in which many tasks are due. It
// reports whether they are to be taken out of the wheel now, for CrowdDue. Room is how many
// of them workers have room for: more would only wait, and keep others waiting; busy says
// that tasks that are due wait for a worker.
func (s *Shard) Crowd(now, due store.Millis, room int, busy bool) bool {
	delete(s.ahead.crowds, due)
	n := min(s.wheel.At(due), room)
	if busy || s.ahead.most == 0 || s.crowdLead(n) <= s.Lead() {
		return false
	}
	if due-s.crowdLead(n) > now {
		s.expectCrowd(due, n)
		return false
	}
	return true
}

// CrowdDue makes the tasks of a crowd ready.
func (s *Shard) CrowdDue(now store.Millis, es []store.Entry) {
	s.due(now, es, store.Millis(store.MaxHoldAhead.Milliseconds()))
}

// HeldMany learns how long it took to hold n tasks while so many calls were in flight.
func (s *Shard) HeldMany(n, calls int, took time.Duration) {
	if n < leastCrowd || calls < 1 {
		return
	}
	cost := min(mostCost, max(leastCost, float64(took)/float64(time.Millisecond)/float64(n*calls)))
	if s.ahead.cost != 0 {
		cost = s.ahead.cost + (cost-s.ahead.cost)/costsWeight
	}
	s.ahead.cost = cost
}
