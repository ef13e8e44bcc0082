package actors

import (
	"time"

	"github.com/ddq-io/ddq/actors/dispatch"
	"github.com/ddq-io/ddq/store"
)

// permitSlack is how much longer than a hold its permit lasts at first: time for the hold
// to be taken.
const permitSlack = 2 * time.Second

// To a topic, about limits.
type (
	// gateTick, from the topic itself.
	gateTick struct{ at time.Time }
	// tokensReserved, permitsAcquired and permitsFreed, from its store calls, each in a callDone.
	tokensReserved struct {
		asked []dispatch.Reservation
		got   []store.Tokens
		err   error
	}
	permitsAcquired struct{ all []dispatch.Acquired }
	permitsFreed    struct{}
	// permitsEnded, from a shard: holds under caps are over, or came to nothing.
	permitsEnded struct{ permits []*dispatch.Permit }
	// permitsFree, from its store calls and from the node: permits of keys that this
	// node waits for may be free: those that the store has it in turn for, and others.
	permitsFree struct{ inTurn, keys []string }
)

// limit begins or ends to apply limits to the topic's tasks.
func (t *topicActor) limit() {
	before := t.core.Limited()
	t.core.Configure(t.clock.Now(), t.topic.Ageing(), t.topic.Limits)
	if !before && t.core.Limited() {
		t.gauges.limited(t.metrics, t.topic.Name)
	}
}

// onLimits handles the messages about limits.
func (t *topicActor) onLimits(m any) {
	if !t.core.Limited() {
		return
	}
	now := t.clock.Now()
	switch m := m.(type) {
	case *gateTick:
		t.core.Tick(now, m.at)
	case *clockJumped:
		t.core.ClockSet(now)
	case *tokensReserved:
		if m.err != nil {
			t.noteLimits(m.err)
		}
		t.reserves.Done()
		t.core.Tokens(now, m.asked, m.got, m.err != nil)
	case *permitsAcquired:
		t.acquires.Done()
		t.core.Permits(now, m.all)
	case *permitsEnded:
		t.free(m.permits)
	case *permitsFreed:
		t.frees.Done()
	case *permitsFree:
		t.core.Freed(now, m.inTurn, m.keys)
	}
}

// carryOut carries out what the core decided.
func (t *topicActor) carryOut() {
	fx := t.core.Effects()
	for i := range fx.Hold {
		h := &fx.Hold[i]
		t.tell(t.ref, h.Shard, &holdTasks{sub: t.subs[h.Sub], tasks: h.Tasks, admissions: h.Admissions, counted: h.Counted})
	}
	t.free(fx.Free)
	t.reserves.Waiting = append(t.reserves.Waiting, fx.Reserve...)
	t.acquires.Waiting = append(t.acquires.Waiting, fx.Acquire...)
	t.resign(fx.Resign)
	for _, at := range fx.WakeAt {
		t.after(max(at.Sub(t.clock.Now()), 100*time.Microsecond), &gateTick{at})
	}
	t.flyLimits()
	refused := t.ask(fx.Ask)
	t.giveVoid(fx.Void)
	if refused {
		t.carryOut()
	}
}
