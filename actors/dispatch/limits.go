package dispatch

import (
	"slices"
	"strings"
	"time"

	"github.com/ddq-io/ddq/actors/ordered"
	"github.com/ddq-io/ddq/store"
)

// Tick looks at what waits for a moment: the one that was asked for has come. Limits must
// have been configured; so for ClockSet, Taken, Abandoned, Ended and Freed.
func (t *Topic) Tick(now, asked time.Time) {
	if asked.Equal(t.armed) {
		t.armed = time.Time{}
	}
	t.step(now)
}

// ClockSet forgets moments that were computed before the clock was set, and asks for the
// next Tick again: its timer counts from what the clock said then.
func (t *Topic) ClockSet(now time.Time) {
	t.armed, t.cut = time.Time{}, time.Time{}
	g := t.limiter
	g.retry, g.could, g.owes = time.Time{}, time.Time{}, time.Time{} // step sees that something is owed
	if g.call != nil {
		g.call.stale = true // what it says may be of the clock of before
	}
	for _, k := range g.turns {
		if !k.turn.IsZero() {
			k.turn = now
		}
	}
	for _, k := range ordered.All(g.by, compareNames) {
		if k.closed {
			g.reopen(k)
			k.again = time.Time{}
		}
	}
	t.turnBackComing(func(a *admitted) bool { return a.at.After(now.Add(2 * store.TokenHorizon)) }, true)
	t.step(now)
}

// Taken records what the call that is on its way came to.
func (t *Topic) Taken(now time.Time, a *Taken) {
	if t.limiter.call == nil {
		return // of an earlier incarnation
	}
	t.taken(now, a)
	t.step(now)
}

// Abandoned records what became of a call of an incarnation before. Nothing that it got is used.
func (t *Topic) Abandoned(now time.Time, call *TakeCall, a *Taken) {
	t.limiter.counted.gaveBack(call, a)
	if g := t.limiter; a.Reply == nil {
		g.failed(call, a)
	} else {
		holder := 0
		for i := range a.Reply.Wants {
			if got := &a.Reply.Wants[i]; got.Status == store.Granted {
				g.unused(got.Receipt, call.permit(i, holder))
				holder++
			}
		}
	}
	t.step(now)
}

// Ended records that permits are over with their holds, and that tasks were certainly not held.
func (t *Topic) Ended(now time.Time, permits []*Permit, unused []*Admission) {
	for _, p := range permits {
		t.limiter.end(p)
	}
	for _, a := range unused {
		t.limiter.unused(a.receipt, a.Permit)
	}
	t.step(now)
}

// Freed records that something may be there of caps and rates in whose lines this node has a place.
func (t *Topic) Freed(now time.Time, caps, rates []string) {
	for _, key := range caps {
		t.limiter.freed(now, keyName{key: key})
	}
	for _, key := range rates {
		t.limiter.freed(now, keyName{true, key})
	}
	t.step(now)
}

// Owes reports whether permits are still to be freed.
func (t *Topic) Owes() bool {
	return t.limiter != nil && (t.limiter.call != nil || len(t.limiter.free) > 0)
}

// limit begins to apply limits, or others than before.
func (t *Topic) limit(ageing int, limits store.TopicLimits) {
	g := t.limiter
	if g == nil {
		g = newLimiter(t.core.topic, ageing)
		for t.core.readyQueue.Waiting() > 0 {
			for _, task := range slices.Clone(t.core.take(t.core.readyQueue.Waiting())) {
				g.add(task)
			}
			t.core.compact()
		}
		t.limiter, t.core.limiter = g, g
		t.core.count()
	}
	if limits != g.limits {
		t.turnBackComing(func(*admitted) bool { return true }, true)
	}
	g.configure(ageing, limits)
}

func compareNames(a, b keyName) int {
	switch {
	case a.rate == b.rate:
		return strings.Compare(a.key, b.key)
	case a.rate:
		return -1
	}
	return 1
}
