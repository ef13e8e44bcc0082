package dispatch

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/ddq-io/ddq/actors/ordered"
	"github.com/ddq-io/ddq/store"
)

// limiter is a topic's bookkeeping of tasks under limits: it stands between what the
// core assigned and the holds. It has no clock, no goroutine and no I/O; Topic owns it
// and carries out what it decides.
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
type limiter struct {
	topic   string
	limits  store.TopicLimits
	every   int                   // see readyQueue
	tickets map[ticketID]*Ticket  // of every task that came by and did not go yet
	rates   map[string]*rateLimit // by key; empty: the topic's
	caps    map[string]*capLimit
	waits   waitCounts
	alarms  alarms
	arrived int64
	coming  int // tokens of windows that are asked for

	// Gathered until Topic.admitted empties it.
	ready   []readyTask // again
	passed  []admittedTask
	refunds map[Address]int
	ask     []*Ticket        // permits
	resign  []store.LimitKey // caps that this node waits for no longer
	reserve []*rateLimit     // buckets that want tokens
	windows []*rateLimit     // the same; they stay until there is room
}

type ticketID struct {
	shard int
	id    string
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
	return &limiter{
		topic:   topic,
		tickets: make(map[ticketID]*Ticket),
		rates:   make(map[string]*rateLimit),
		caps:    make(map[string]*capLimit),
		refunds: make(map[Address]int),
	}
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

// all returns the tickets in order of arrival.
func (g *limiter) all() []*Ticket {
	all := make([]*Ticket, 0, len(g.tickets))
	for _, t := range g.tickets {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *Ticket) int { return cmp.Compare(a.arrival, b.arrival) })
	return all
}

// again makes a task ready again.
func (g *limiter) again(t *Ticket) { g.ready = append(g.ready, t.readyTask) }

// refund ends the assignment that a task came by with.
func (g *limiter) refund(sub int64, t *Ticket) { g.refunds[Address{sub, t.Shard}]++ }

// turnBack ends the assignment of a task that passed and cannot be sent on: its
// subscription ended while permits were asked for, and it is ready again, or its shard
// has retired.
func (g *limiter) turnBack(p *admittedTask, ready bool) {
	t := &Ticket{readyTask: p.Task}
	g.refund(p.Sub, t)
	if ready {
		g.again(t)
	}
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

// unclaim gives up the claims that a task has at caps: others may go instead.
func (g *limiter) unclaim(t *Ticket, caps []*capLimit) {
	for _, c := range caps {
		if i := slices.Index(t.claims, c); i >= 0 {
			t.claims = slices.Delete(t.claims, i, i+1)
			c.out--
			g.wakeSoon(&c.waitQueue)
		}
	}
}

// untry is unclaim, and the task would wait there again.
func (g *limiter) untry(t *Ticket, caps []*capLimit) {
	g.unclaim(t, caps)
	t.tried = slices.DeleteFunc(t.tried, func(c *capLimit) bool { return slices.Contains(caps, c) })
}

// back records that a task is not in flight from a queue any more.
func (g *limiter) back(t *Ticket) {
	if t.cleared != nil {
		t.cleared.out--
		g.wakeSoon(t.cleared)
	}
}

// wakeSoon has a queue looked at when what is going on is over.
func (g *limiter) wakeSoon(l *waitQueue) { g.alarms.set(l, time.Time{}.Add(1)) }

// under reports whether limits apply to a task.
func (g *limiter) under(e *store.Entry) bool {
	rate, concurrency := keysOf(e)
	return g.limits.Rate.Limited() || g.limits.Concurrency > 0 ||
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

// release forgets the ticket that a task had under other limits.
func (g *limiter) release(id ticketID) {
	if t := g.tickets[id]; t != nil && t.stage == outside {
		g.back(t)
		g.unclaim(t, slices.Clone(t.claims))
		delete(g.tickets, id)
	}
}

func (g *limiter) ticket(shard int, e store.Entry) *Ticket {
	id := ticketID{shard, e.ID}
	t := g.tickets[id]
	if t == nil {
		g.arrived++
		t = &Ticket{arrival: g.arrived}
		t.rateKey, t.capKey = keysOf(&e)
		g.tickets[id] = t
	}
	t.readyTask = readyTask{Shard: shard, Entry: e}
	return t
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

// passTurns lets other nodes go where this one's turn is of no use, because the task that
// it was for lacks a token.
func (g *limiter) passTurns(t *Ticket) {
	for _, c := range t.claims {
		if c.len() == 0 {
			g.passTurn(c)
		}
	}
}

func (g *limiter) passTurn(c *capLimit) {
	if c.inTurn {
		c.inTurn = false
		g.resignFrom(c.key)
	}
}

func (g *limiter) resignFrom(key string) {
	g.resign = append(g.resign, store.LimitKey{Topic: g.topic, Key: key})
}

// first takes the next task out of a queue.
func (g *limiter) first(l *waitQueue) *Ticket {
	next := l.pop()
	t := g.tickets[ticketID{next.Shard, next.ID}]
	l.compact()
	t.stage, t.queue = outside, nil
	return t
}

func (g *limiter) join(l *waitQueue, t *Ticket) {
	l.join(t)
	g.wakeSoon(l)
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

// ratesOf are the rates of a task in the order in which it waits for them: what is waited
// for long is had before what comes soon and does not last.
func (g *limiter) ratesOf(t *Ticket) (rates []*rateLimit) {
	if t.rateKey != "" && g.limits.KeyRate.Limited() {
		rates = append(rates, g.rate(t.rateKey, g.limits.KeyRate))
	}
	if g.limits.Rate.Limited() {
		rates = append(rates, g.rate("", g.limits.Rate))
	}
	if len(rates) == 2 && rates[1].sooner(rates[0]) {
		rates[0], rates[1] = rates[1], rates[0]
	}
	return rates
}

func (g *limiter) rate(key string, rate store.Rate) *rateLimit {
	r := g.rates[key]
	if r == nil {
		r = newRateLine(key, g.every, rate, &g.waits.tokens)
		if key == "" {
			r.which = 1
		}
		g.rates[key] = r
	}
	return r
}

// capsOf are the caps of a task, that of its key first.
func (g *limiter) capsOf(t *Ticket) (caps []*capLimit) {
	if t.capKey != "" && g.limits.KeyConcurrency > 0 {
		caps = append(caps, g.cap(t.capKey, g.limits.KeyConcurrency))
	}
	if g.limits.Concurrency > 0 {
		caps = append(caps, g.cap("", g.limits.Concurrency))
	}
	return caps
}

func (g *limiter) cap(key string, most int) *capLimit {
	c := g.caps[key]
	if c == nil {
		c = &capLimit{waitQueue: newWaitQueue(key, g.every, &g.waits.permits), max: most, free: most}
		g.caps[key] = c
	}
	return c
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

// serveCap lets out tasks for which there may be permits; when nobody has told of any
// for a while, one to try.
func (g *limiter) serveCap(now time.Time, c *capLimit) {
	if c.len() == 0 {
		c.retry = time.Time{}
		if c.out+c.asking > 0 {
			return
		}
		g.passTurn(c) // what was let out waits for something else
		delete(g.caps, c.key)
		return
	}
	switch {
	case c.retry.IsZero():
		c.retry = now.Add(capRetry)
	case !c.retry.After(now):
		c.retry = now.Add(capRetry)
		if c.asking == 0 && c.room() <= 0 {
			c.free = c.out + 1
		}
	}
	if !c.inTurn && c.asking+c.out == 0 && c.room() <= 0 {
		c.free = 1 // one asks, so that the store knows that this node waits
	}
	for c.room() > 0 && c.len() > 0 {
		t := g.first(&c.waitQueue)
		c.claim(t)
		g.again(t)
	}
	g.alarms.set(&c.waitQueue, c.retry)
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

// refused has a task wait for the cap that it lacks.
func (g *limiter) refused(a *Acquired) {
	t := a.Ticket
	g.refund(t.sub, t)
	for _, c := range g.capsOf(t) {
		if c.key == a.Lacks || a.Failed {
			c.join(t)
			return
		}
	}
	g.again(t) // the cap is no more
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
