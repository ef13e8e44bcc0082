package dispatch

import (
	"slices"
	"strings"
	"time"

	"github.com/ddq-io/ddq/actors/ordered"
	"github.com/ddq-io/ddq/store"
)

// limiter is a topic's bookkeeping of tasks under limits: it stands between what the
// core assigned and the holds. It has no clock, no goroutine and no I/O; the assigner owns
// it and carries out what it decides.
//
// A task that may not go waits in the queue of what it lacks, and its subscription has
// its credit back. When it may, it is ready again, with its token, and comes by when
// there is credit for it. Tokens go to tasks that have a claim to their permits.
//
// Invariants:
//   - a ticket waits in at most one queue, and has a permit asked for or waits, not both
//   - what a task is let out for is not lost while it waits for something else: it
//     keeps its claim, or others are let out
//   - what waits in a queue is looked at again: it has a wake, a store call in flight, or
//     tasks that it let out, or wants tokens as soon as there is room
//
// It is built in layers, each of which knows those below: the tasks that came by and did
// not go yet, the caps, and the rates, which spend no token on a task that could not go.
type limiter struct {
	rateLimits
	passed []admittedTask // gathered until assigner.pass takes it
}

// admittedTask is a task that may be held.
type admittedTask struct {
	Sub    int64
	Task   readyTask
	since  time.Time // it had all its tokens
	before time.Time // its tokens end; zero: it has none
	Permit *Permit   // nil: under no cap
	doomed bool      // to be dead-lettered
}

// newLimiter returns a limiter without limits; see configure.
func newLimiter(topic string) *limiter {
	tickets := waitlist{topic: topic, tickets: make(map[ticketID]*Ticket), refunds: make(map[Address]int)}
	caps := capLimits{waitlist: tickets, caps: make(map[string]*capLimit)}
	return &limiter{rateLimits: rateLimits{capLimits: caps, rates: make(map[string]*rateLimit)}}
}

// configure replaces the limits. What waits is ready again.
func (g *limiter) configure(l store.TopicLimits) {
	if l == g.limits {
		return
	}
	g.limits = l
	for _, t := range g.all() {
		if t.stage == waiting {
			t.stage, t.queue = outside, nil
			g.again(t)
		}
		t.cleared, t.tried, t.claims = nil, nil, nil
	}
	clear(g.rates)
	empty(&g.reserve)
	empty(&g.windows)
	g.alarms, g.waits = nil, waitCounts{}
	for _, c := range ordered.All(g.caps, strings.Compare) {
		g.resignFrom(c.key)
	}
	clear(g.caps)
}

// drop forgets the tasks of a shard.
func (g *limiter) drop(shard int, now time.Time) {
	queues := make(map[*waitQueue]bool)
	for _, t := range g.all() {
		if t.Shard != shard {
			continue
		}
		if t.stage == waiting && !queues[t.queue] {
			queues[t.queue] = true
			t.queue.drop(shard)
		}
		g.forget(t)
	}
	g.service(now)
}

func (g *limiter) forget(t *Ticket) {
	switch t.stage {
	case waiting:
		g.wakeSoon(t.queue)
	case acquiring:
		t.dropped = true // its permits are freed when they come
	case outside:
		g.back(t)
	}
	g.unclaim(t, slices.Clone(t.claims))
	delete(g.tickets, ticketID{t.Shard, t.ID})
}

// under reports whether limits apply to a task.
func (g *limiter) under(e *store.Entry) bool {
	rate, concurrency := keysOf(e)
	return g.limits.Rate.Limited() || g.limits.Concurrency > 0 || g.limits.Namespace > 0 ||
		rate != "" && g.limits.KeyRate.Limited() || concurrency != "" && g.limits.KeyConcurrency > 0
}

// admit records what the dispatcher assigned: each task passes, waits, or has permits
// asked for.
func (g *limiter) admit(now time.Time, a assignment) {
	for i := range a.Tasks {
		e := a.Tasks[i]
		if !g.under(&e) {
			g.release(ticketID{a.Shard, e.ID})
			g.passed = append(g.passed, admittedTask{Sub: a.Sub, Task: readyTask{Shard: a.Shard, Entry: e}})
			continue
		}
		t := g.ticket(a.Shard, e)
		if t.stage != outside { // known twice: one of them is enough
			g.refund(a.Sub, t)
			continue
		}
		if t.cleared != nil {
			r := g.rates[t.cleared.key]
			r.came(t.tokens[r.which].good(now), a.OnDemand)
		}
		g.back(t)
		g.try(now, t, a.Sub)
	}
	g.service(now)
}

// try lets a task pass, or has it wait for what it lacks.
func (g *limiter) try(now time.Time, t *Ticket, sub int64) {
	cleared := t.cleared
	t.cleared = nil
	if t.doomed {
		g.pass(t, sub, nil)
		return
	}
	caps := g.capsOf(t)
	if c := t.lacks(caps); c != nil {
		g.untry(t, caps[slices.Index(caps, c):])
		g.refund(sub, t)
		g.join(&c.waitQueue, t)
		return
	}
	if r := g.lacking(now, t, cleared); r != nil {
		g.refund(sub, t)
		g.waitFor(r, t)
		return
	}
	t.since = now
	if len(caps) == 0 {
		g.pass(t, sub, nil)
		return
	}
	g.untry(t, caps)
	for _, c := range caps {
		c.free--
		c.asking++
	}
	t.stage, t.sub = acquiring, sub
	g.ask = append(g.ask, t)
}

// pass lets a task go.
func (g *limiter) pass(t *Ticket, sub int64, p *Permit) {
	passed := admittedTask{Sub: sub, Task: t.readyTask, since: t.since, Permit: p, doomed: t.doomed}
	if !t.doomed {
		for _, r := range g.ratesOf(t) {
			if before := t.tokens[r.which].before; passed.before.IsZero() || before.Before(passed.before) {
				passed.before = before
			}
		}
	}
	g.passed = append(g.passed, passed)
	delete(g.tickets, ticketID{t.Shard, t.ID})
}

// clockSet has every queue looked at: moments that were computed before the clock was set
// may be far from now.
func (g *limiter) clockSet(now time.Time) {
	for _, r := range ordered.All(g.rates, strings.Compare) {
		r.clockSet(now)
		g.wakeSoon(&r.waitQueue)
	}
	for _, c := range ordered.All(g.caps, strings.Compare) {
		c.retry = time.Time{}
		g.wakeSoon(&c.waitQueue)
	}
	g.service(now)
}

// wakeAt is when to tick next, zero when nothing waits for a moment.
func (g *limiter) wakeAt() time.Time { return g.alarms.next() }

// service looks at the queues whose moment has come.
func (g *limiter) service(now time.Time) {
	for l := g.alarms.due(now); l != nil; l = g.alarms.due(now) {
		if r := g.rates[l.key]; r != nil && (&r.waitQueue == l || &r.urgent == l) {
			g.serveRate(now, r)
		}
		if c := g.caps[l.key]; c != nil && &c.waitQueue == l {
			g.serveCap(now, c)
		}
	}
}

// reserved records what reservations came to; those of queues that are no more are
// lost.
func (g *limiter) reserved(now time.Time, asked []Reservation, got []store.Tokens, failed bool) {
	for i := range asked {
		r := asked[i].rate
		if r.window() {
			g.coming -= asked[i].Asked.N
		}
		if g.rates[r.key] != r {
			continue
		}
		if failed {
			r.asking, r.askAt = 0, now.Add(reserveRetry)
		} else {
			over := r.asking - got[i].N
			r.reserved(got[i])
			if g.limits.DeadLetter {
				g.doom(now, r, over)
			}
		}
		g.wakeSoon(&r.waitQueue)
	}
	g.service(now)
}

// Acquired is what asking for the permits of a task came to.
type Acquired struct {
	Ticket *Ticket
	Permit *Permit // nil: refused
	Lacks  string  // the key of the cap that refused it
	Failed bool    // the store did
	Room   int     // permits that the topic or key has left besides
}

// Acquired records what became of permits, and returns those that are of no use.
func (g *limiter) acquired(now time.Time, all []Acquired) (unused []*Permit) {
	for i := range all {
		a := &all[i]
		for _, c := range g.capsOf(a.Ticket) {
			c.answered(a)
			g.wakeSoon(&c.waitQueue)
		}
		a.Ticket.stage = outside
		if a.Permit != nil && a.Ticket.dropped {
			unused = append(unused, a.Permit)
		}
		switch {
		case a.Ticket.dropped:
			g.refund(a.Ticket.sub, a.Ticket)
		case a.Permit != nil:
			g.pass(a.Ticket, a.Ticket.sub, a.Permit)
		default:
			g.refused(a)
		}
	}
	g.service(now)
	return unused
}

// freed records that a permit of a key may be free. In turn, it was this node's turn to
// be told: it resigns when nothing here waits any more.
func (g *limiter) freed(now time.Time, key string, inTurn bool) {
	c := g.caps[key]
	if c == nil || c.len() == 0 && c.out+c.asking == 0 {
		if inTurn {
			g.resignFrom(key)
		}
		return
	}
	c.gain()
	g.wakeSoon(&c.waitQueue)
	g.service(now)
}

// Admission is what the limiter admitted a hold with.
type Admission struct {
	Since  store.Millis // it had all its tokens
	before store.Millis // of the hold, see store.Hold
	until  store.Millis
	Permit *Permit // nil: under no cap
	Doomed bool    // to be dead-lettered
}

// admission says how a task may be held. A hold that reaches the store so late that it
// would outlast its permit is refused there.
func (p *admittedTask) admission(visibility time.Duration) *Admission {
	if p.before.IsZero() && p.Permit == nil && !p.doomed {
		return nil
	}
	l := &Admission{Since: store.Millis(p.since.UnixMilli()), Permit: p.Permit, Doomed: p.doomed}
	if !p.before.IsZero() {
		l.before = store.Millis(p.before.UnixMilli())
	}
	if p.Permit != nil {
		l.until = p.Permit.Until.Add(-store.PermitSkew)
		late := l.until - store.Millis(visibility.Milliseconds())
		if l.before == 0 || late < l.before {
			l.before = late
		}
	}
	return l
}

// Apply has a hold keep to what it was let through with; nil is nothing.
func (l *Admission) Apply(h *store.Hold) {
	if l == nil {
		return
	}
	h.Before, h.Until = l.before, l.until
	if l.Permit != nil {
		h.Token = l.Permit.Holder
	}
}
