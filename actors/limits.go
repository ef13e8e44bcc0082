package actors

import (
	"cmp"
	"time"

	"github.com/ddq-io/ddq/store"
)

// permitSlack is how much longer than a hold its permit lasts at first: time for the hold
// to be taken.
const permitSlack = 2 * time.Second

// leave is what a hold was let through the gate with.
type leave struct {
	since  store.Millis // it had all its tokens
	before store.Millis // of the hold, see store.Hold
	until  store.Millis
	permit *permit // nil: under no cap
	doomed bool    // to be dead-lettered
}

// To a topic, about limits.
type (
	// gateTick, from the topic itself.
	gateTick struct{ at time.Time }
	// tokensReserved, permitsAcquired and permitsFreed, from its store calls.
	tokensReserved struct {
		asked []reservation
		got   []store.Tokens
		err   error
	}
	permitsAcquired struct{ all []acquired }
	permitsFreed    struct{}
	// permitsEnded, from a shard: holds under caps are over, or came to nothing.
	permitsEnded struct{ permits []*permit }
	// permitsFree, from its store calls and from System: permits of keys that this
	// node waits for may be free: those that the store has it in turn for, and others.
	permitsFree struct{ inTurn, keys []string }
)

// limit begins or ends to apply limits to the topic's tasks.
func (t *topicActor) limit() (assigned []assignment) {
	limits := t.topic.Limits
	if t.gate == nil {
		if limits == (store.TopicLimits{}) {
			return nil
		}
		t.gate = newGate(t.topic.Name)
		t.gauges.limited(t.metrics, t.topic.Name)
	}
	t.gate.every = t.topic.Ageing()
	t.gate.configure(limits)
	return append(t.carry(), t.bound(limits)...)
}

// hold carries out what the core decided.
func (t *topicActor) hold(assigned []assignment) {
	if t.gate == nil {
		for _, a := range assigned {
			t.tell(t.ref, a.shard, &holdTasks{sub: t.subs[a.sub], tasks: a.tasks})
		}
		return
	}
	for len(assigned) > 0 {
		now := t.clock.Now()
		for _, a := range assigned {
			t.gate.admit(now, a)
		}
		assigned = t.carry()
	}
}

// onLimits handles the messages about limits.
func (t *topicActor) onLimits(m any) {
	if t.gate == nil {
		return
	}
	now := t.clock.Now()
	switch m := m.(type) {
	case *gateTick:
		if m.at.Equal(t.armed) {
			t.armed = time.Time{}
		}
		t.gate.tick(now)
	case *clockJumped: // the timer counts from what the clock said before
		t.armed = time.Time{}
		t.gate.tick(now)
	case *tokensReserved:
		if m.err != nil {
			t.noteLimits(m.err)
		}
		t.reserves.landed()
		t.gate.reserved(now, m.asked, m.got, m.err != nil)
	case *permitsAcquired:
		t.acquires.landed()
		t.free(t.gate.acquired(now, m.all))
	case *permitsEnded:
		t.free(m.permits)
	case *permitsFreed:
		t.frees.landed()
	case *permitsFree:
		for _, key := range m.inTurn {
			t.gate.freed(now, key, true)
		}
		for _, key := range m.keys {
			t.gate.freed(now, key, false)
		}
	}
	t.hold(t.carry())
}

// carry carries out what the gate decided, and returns what the core assigned since.
func (t *topicActor) carry() (assigned []assignment) {
	g := t.gate
	t.passOn(g.takePassed())
	t.reserves.waiting = append(t.reserves.waiting, g.takeReservations(t.core.most)...)
	t.acquires.waiting = append(t.acquires.waiting, g.takeAcquires()...)
	t.resign(g.takeResigned())
	ready := make(map[int][]store.Entry)
	for _, r := range g.takeReady() {
		ready[r.shard] = append(ready[r.shard], r.Entry)
	}
	for shard, tasks := range inOrder(ready, cmp.Compare) {
		assigned = append(assigned, t.core.add(shard, tasks)...)
	}
	for sub, n := range inOrder(g.refunds, cmp.Compare) {
		delete(g.refunds, sub)
		assigned = append(assigned, t.core.refund(sub, n)...)
	}
	t.arm()
	return assigned
}

// arm has the gate looked at when its next moment comes.
func (t *topicActor) arm() {
	at := t.gate.wakeAt()
	if at.IsZero() || !t.armed.IsZero() && !at.Before(t.armed) {
		return
	}
	t.armed = at
	t.after(max(at.Sub(t.clock.Now()), 100*time.Microsecond), &gateTick{at})
}

// passOn sends what may be held to its shards.
func (t *topicActor) passOn(passed []pass) {
	type address struct {
		sub   int64
		shard int
	}
	groups := make(map[address]*holdTasks)
	var order []address
	for i := range passed {
		p := &passed[i]
		sub := t.subs[p.sub]
		if sub == nil { // gone while permits were asked for
			t.gate.again(&ticket{readyTask: p.task})
			if p.permit != nil {
				t.free([]*permit{p.permit})
			}
			continue
		}
		at := address{p.sub, p.task.shard}
		if groups[at] == nil {
			groups[at] = &holdTasks{sub: sub, counted: t.core.most > 0}
			order = append(order, at)
		}
		m := groups[at]
		m.tasks, m.leaves = append(m.tasks, p.task.Entry), append(m.leaves, p.leave(sub.options.Visibility))
	}
	for _, at := range order {
		t.tell(t.ref, at.shard, groups[at])
	}
}

// leave says how a task may be held. A hold that would outlast its permit, because it
// was long on its way, is none.
func (p *pass) leave(visibility time.Duration) *leave {
	if p.before.IsZero() && p.permit == nil && !p.doomed {
		return nil
	}
	l := &leave{since: store.Millis(p.since.UnixMilli()), permit: p.permit, doomed: p.doomed}
	if !p.before.IsZero() {
		l.before = store.Millis(p.before.UnixMilli())
	}
	if p.permit != nil {
		l.until = p.permit.until.Add(-store.PermitSkew)
		late := l.until - store.Millis(visibility.Milliseconds())
		if l.before == 0 || late < l.before {
			l.before = late
		}
	}
	return l
}

// limited reports whether limits apply to a task with these traits: it is not held as
// it is stored then.
func (t *topicActor) limited(traits *store.Traits) bool {
	return t.gate != nil && t.gate.under(&store.Entry{Traits: traits})
}

// drop forgets the ready tasks of a shard.
func (t *topicActor) drop(shard int) {
	t.core.drop(shard)
	t.core.way = 0 // of a shard that ended badly nobody says what became of them
	if t.gate != nil {
		t.gate.drop(shard, t.clock.Now())
		t.hold(t.carry())
	}
}
