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
	slots  Wheel                         // asked about milliseconds only
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
func (a *ahead) Lead() store.Millis { return (a.most + 1) / 2 }

// HoldAhead sets how long before their due times tasks become ready, 0 for not at all. The
// wheel is to go by the new Lead from then on.
func (a *ahead) HoldAhead(most time.Duration) {
	a.most = store.Millis(min(most, store.MaxHoldAhead).Milliseconds())
}

// reach is how long before its due time a task may be ready.
func (a *ahead) reach(e store.Entry, ahead store.Millis) store.Millis {
	if e.Traits.Ordering() != "" {
		return 0
	}
	return ahead
}

// exactly reports whether the wheel is to tell of a task when it is due, and not
// ahead.
func (a *ahead) exactly(e store.Entry, ahead store.Millis) bool {
	return a.most > 0 && a.reach(e, ahead) == 0
}

// Until is how far slots are to be taken out of the wheel when it tells of one.
func (a *ahead) Until(now store.Millis) store.Millis { return now + a.most }

// expectCrowds has the wheel tell in time of milliseconds in which many tasks are due.
func (a *ahead) expectCrowds(es []store.Entry) {
	if a.most == 0 {
		return
	}
	last := store.Millis(math.MinInt64)
	for _, e := range es {
		if e.Due != last {
			last = e.Due
			a.expectCrowd(e.Due, a.slots.At(e.Due))
		}
	}
}

// expectCrowd has the wheel tell in time of n tasks that are due in a millisecond, and
// reports whether that is earlier than it does anyway.
func (a *ahead) expectCrowd(due store.Millis, n int) bool {
	lead := a.crowdLead(n)
	if lead <= a.Lead() {
		return false
	}
	if when := due - lead; a.crowds[due] != when {
		if a.crowds == nil {
			a.crowds = make(map[store.Millis]store.Millis)
		}
		a.crowds[due] = when
		a.slots.Crowd(due, when)
	}
	return true
}

// crowdLead is how long before their due time n tasks become ready: as long as it takes to
// hold them, and the lead of any task besides.
func (a *ahead) crowdLead(n int) store.Millis {
	if n < leastCrowd {
		return a.Lead()
	}
	cost := a.cost
	if cost == 0 {
		cost = firstCost
	}
	lead := a.Lead() + store.Millis(math.Ceil(float64(n)*cost))
	return min(lead, store.Millis(store.MaxHoldAhead.Milliseconds()))
}

// Crowd is called when the wheel tells of a millisecond in which many tasks are due. It
// reports whether they are to be taken out of the wheel now, for CrowdDue. Room is how many
// of them workers have room for: more would only wait, and keep others waiting; busy says
// that tasks that are due wait for a worker.
func (a *ahead) Crowd(now, due store.Millis, room int, busy bool) bool {
	delete(a.crowds, due)
	n := min(a.slots.At(due), room)
	if busy || a.most == 0 || a.crowdLead(n) <= a.Lead() {
		return false
	}
	if due-a.crowdLead(n) > now {
		a.expectCrowd(due, n)
		return false
	}
	return true
}

// HeldMany learns how long it took to hold n tasks while so many calls were in flight.
func (a *ahead) HeldMany(n, calls int, took time.Duration) {
	if n < leastCrowd || calls < 1 {
		return
	}
	cost := min(mostCost, max(leastCost, float64(took)/float64(time.Millisecond)/float64(n*calls)))
	if a.cost != 0 {
		cost = a.cost + (cost-a.cost)/costsWeight
	}
	a.cost = cost
}
