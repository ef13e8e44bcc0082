package actors

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/ddq-io/ddq/store"
)

// gate is a topic's bookkeeping of tasks under limits: it stands between what the
// core assigned and the holds. It has no clock, no goroutine and no I/O; the topic
// actor owns it and carries out what it decides.
//
// A task that may not go waits in the line of what it lacks, and its subscription has
// its credit back. When it may, it is ready again, with its token, and comes by when
// there is credit for it. Tokens go to tasks that have a claim to their permits.
//
// Invariants:
//   - a ticket waits in at most one line, and has a permit asked for or waits, not both
//   - what a task is let out for is not lost while it waits for something else: it
//     keeps its claim, or others are let out
//   - what waits in a line is looked at again: it has a wake, a question under way, or
//     tasks that it let out
type gate struct {
	topic   string
	limits  store.TopicLimits
	every   int                  // see line
	tickets map[ticketID]*ticket // of every task that came by and did not go yet
	rates   map[string]*rateLine // by key; empty: the topic's
	caps    map[string]*capLine
	waits   waitCounts
	alarms  alarms
	arrived int64

	// Gathered since it was taken.
	ready   []readyTask // again
	passed  []pass
	refunds map[int64]int
	ask     []*ticket        // permits
	resign  []store.LimitKey // caps that this node waits for no longer
	reserve []*rateLine
}

type ticketID struct {
	shard int
	id    string
}

// pass is a task that may be held.
type pass struct {
	sub    int64
	task   readyTask
	since  time.Time // it had all its tokens
	before time.Time // its tokens end; zero: it has none
	permit *permit   // nil: under no cap
	doomed bool      // to be dead-lettered
}

func newGate(topic string) *gate {
	return &gate{
		topic:   topic,
		tickets: make(map[ticketID]*ticket),
		rates:   make(map[string]*rateLine),
		caps:    make(map[string]*capLine),
		refunds: make(map[int64]int),
	}
}

// configure takes in other limits. What waits comes by again.
func (g *gate) configure(l store.TopicLimits) {
	if l == g.limits {
		return
	}
	g.limits = l
	for _, t := range g.all() {
		if t.stage == waiting {
			t.stage, t.line = outside, nil
			g.again(t)
		}
		t.cleared, t.tried, t.claims = nil, nil, nil
	}
	clear(g.rates)
	g.alarms, g.waits = nil, waitCounts{}
	for _, c := range inOrder(g.caps, strings.Compare) {
		g.resignFrom(c.key)
	}
	clear(g.caps)
}

// all returns the tickets in order of arrival.
func (g *gate) all() []*ticket {
	all := make([]*ticket, 0, len(g.tickets))
	for _, t := range g.tickets {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *ticket) int { return cmp.Compare(a.arrival, b.arrival) })
	return all
}

// again makes a task ready again.
func (g *gate) again(t *ticket) { g.ready = append(g.ready, t.readyTask) }

// drop forgets the tasks of a shard.
func (g *gate) drop(shard int, now time.Time) {
	lines := make(map[*waitline]bool)
	for _, t := range g.all() {
		if t.shard != shard {
			continue
		}
		if t.stage == waiting && !lines[t.line] {
			lines[t.line] = true
			t.line.drop(shard)
		}
		g.forget(t)
	}
	g.service(now)
}

func (g *gate) forget(t *ticket) {
	switch t.stage {
	case waiting:
		g.wakeSoon(t.line)
	case acquiring:
		t.dropped = true // its permits are freed when they come
	case outside:
		g.back(t)
	}
	g.unclaim(t, slices.Clone(t.claims))
	delete(g.tickets, ticketID{t.shard, t.ID})
}

// unclaim gives up the claims that a task has at caps: others may go instead.
func (g *gate) unclaim(t *ticket, caps []*capLine) {
	for _, c := range caps {
		if i := slices.Index(t.claims, c); i >= 0 {
			t.claims = slices.Delete(t.claims, i, i+1)
			c.out--
			g.wakeSoon(&c.waitline)
		}
	}
}

// untry is unclaim, and the task would wait there again.
func (g *gate) untry(t *ticket, caps []*capLine) {
	g.unclaim(t, caps)
	t.tried = slices.DeleteFunc(t.tried, func(c *capLine) bool { return slices.Contains(caps, c) })
}

// back takes in that a task is not on its way from a line any more.
func (g *gate) back(t *ticket) {
	if t.cleared != nil {
		t.cleared.out--
		g.wakeSoon(t.cleared)
	}
}

// wakeSoon has a line looked at when what is going on is over.
func (g *gate) wakeSoon(l *waitline) { g.alarms.set(l, time.Time{}.Add(1)) }

// under reports whether limits apply to a task.
func (g *gate) under(e *store.Entry) bool {
	rate, concurrency := keysOf(e)
	return g.limits.Rate.Limited() || g.limits.Concurrency > 0 ||
		rate != "" && g.limits.KeyRate.Limited() || concurrency != "" && g.limits.KeyConcurrency > 0
}

// admit takes in what the core assigned: each task passes, waits, or has permits
// asked for.
func (g *gate) admit(now time.Time, a assignment) {
	for i := range a.tasks {
		e := a.tasks[i]
		if !g.under(&e) {
			g.release(ticketID{a.shard, e.ID})
			g.passed = append(g.passed, pass{sub: a.sub, task: readyTask{shard: a.shard, Entry: e}})
			continue
		}
		t := g.ticket(a.shard, e)
		if t.stage != outside { // known twice: one of them is enough
			g.refunds[a.sub]++
			continue
		}
		g.back(t)
		g.try(now, t, a.sub)
	}
	g.service(now)
}

// release forgets the ticket that a task had under other limits.
func (g *gate) release(id ticketID) {
	if t := g.tickets[id]; t != nil && t.stage == outside {
		g.back(t)
		g.unclaim(t, slices.Clone(t.claims))
		delete(g.tickets, id)
	}
}

func (g *gate) ticket(shard int, e store.Entry) *ticket {
	id := ticketID{shard, e.ID}
	t := g.tickets[id]
	if t == nil {
		g.arrived++
		t = &ticket{arrival: g.arrived}
		t.rateKey, t.capKey = keysOf(&e)
		g.tickets[id] = t
	}
	t.readyTask = readyTask{shard: shard, Entry: e}
	return t
}

// try lets a task pass, or has it wait for what it lacks.
func (g *gate) try(now time.Time, t *ticket, sub int64) {
	cleared := t.cleared
	t.cleared = nil
	if t.doomed {
		g.pass(t, sub, nil)
		return
	}
	caps := g.capsOf(t)
	if c := t.lacks(caps); c != nil {
		g.untry(t, caps[slices.Index(caps, c):])
		g.refunds[sub]++
		g.join(&c.waitline, t)
		return
	}
	if r := g.lacking(now, t, cleared); r != nil {
		g.refunds[sub]++
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
func (g *gate) passTurns(t *ticket) {
	for _, c := range t.claims {
		if c.len() == 0 {
			g.passTurn(c)
		}
	}
}

func (g *gate) passTurn(c *capLine) {
	if c.inTurn {
		c.inTurn = false
		g.resignFrom(c.key)
	}
}

func (g *gate) resignFrom(key string) {
	g.resign = append(g.resign, store.LimitKey{Topic: g.topic, Key: key})
}

// first takes the next task out of a line.
func (g *gate) first(l *waitline) *ticket {
	next := l.pop()
	t := g.tickets[ticketID{next.shard, next.ID}]
	l.compact()
	t.stage, t.line = outside, nil
	return t
}

func (g *gate) join(l *waitline, t *ticket) {
	l.join(t)
	g.wakeSoon(l)
}

// pass lets a task go.
func (g *gate) pass(t *ticket, sub int64, p *permit) {
	passed := pass{sub: sub, task: t.readyTask, since: t.since, permit: p, doomed: t.doomed}
	if !t.doomed {
		for _, r := range g.ratesOf(t) {
			if before := t.tokens[r.which].before; passed.before.IsZero() || before.Before(passed.before) {
				passed.before = before
			}
		}
	}
	g.passed = append(g.passed, passed)
	delete(g.tickets, ticketID{t.shard, t.ID})
}

// ratesOf are the rates of a task, the slower first: what is waited for long is had
// before what comes soon and does not last.
func (g *gate) ratesOf(t *ticket) (rates []*rateLine) {
	if t.rateKey != "" && g.limits.KeyRate.Limited() {
		rates = append(rates, g.rate(t.rateKey, g.limits.KeyRate))
	}
	if g.limits.Rate.Limited() {
		rates = append(rates, g.rate("", g.limits.Rate))
	}
	if len(rates) == 2 && rates[0].rate.Spacing() < rates[1].rate.Spacing() {
		rates[0], rates[1] = rates[1], rates[0]
	}
	return rates
}

func (g *gate) rate(key string, rate store.Rate) *rateLine {
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
func (g *gate) capsOf(t *ticket) (caps []*capLine) {
	if t.capKey != "" && g.limits.KeyConcurrency > 0 {
		caps = append(caps, g.cap(t.capKey, g.limits.KeyConcurrency))
	}
	if g.limits.Concurrency > 0 {
		caps = append(caps, g.cap("", g.limits.Concurrency))
	}
	return caps
}

func (g *gate) cap(key string, most int) *capLine {
	c := g.caps[key]
	if c == nil {
		c = &capLine{waitline: newWaitline(key, g.every, &g.waits.permits), max: most, free: most}
		g.caps[key] = c
	}
	return c
}

// tick looks at the lines whose moment has come.
func (g *gate) tick(now time.Time) { g.service(now) }

// wakeAt is when to tick next, zero when nothing waits for a moment.
func (g *gate) wakeAt() time.Time { return g.alarms.next() }

// service looks at the lines whose moment has come.
func (g *gate) service(now time.Time) {
	for l := g.alarms.due(now); l != nil; l = g.alarms.due(now) {
		if r := g.rates[l.key]; r != nil && (&r.waitline == l || &r.urgent == l) {
			g.serveRate(now, r)
		}
		if c := g.caps[l.key]; c != nil && &c.waitline == l {
			g.serveCap(now, c)
		}
	}
}

// serveCap lets out tasks for which there may be permits; when nobody has told of any
// for a while, one to try.
func (g *gate) serveCap(now time.Time, c *capLine) {
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
		t := g.first(&c.waitline)
		c.claim(t)
		g.again(t)
	}
	g.alarms.set(&c.waitline, c.retry)
}

// takeAcquires returns the tasks to ask permits for.
func (g *gate) takeAcquires() (tickets []*ticket) {
	tickets, g.ask = g.ask, nil
	return tickets
}

// takeResigned returns the caps that this node does not wait for any more.
func (g *gate) takeResigned() (keys []store.LimitKey) {
	keys, g.resign = g.resign, nil
	return keys
}

// acquired is what asking for the permits of a task came to.
type acquired struct {
	ticket *ticket
	permit *permit // nil: refused
	lacks  string  // the key of the cap that refused it
	failed bool    // the store did
	room   int     // permits that the topic or key has left besides
}

// acquired takes in what became of permits, and returns those that are of no use.
func (g *gate) acquired(now time.Time, all []acquired) (unused []*permit) {
	for i := range all {
		a := &all[i]
		for _, c := range g.capsOf(a.ticket) {
			c.answered(a)
			g.wakeSoon(&c.waitline)
		}
		a.ticket.stage = outside
		if a.permit != nil && a.ticket.dropped {
			unused = append(unused, a.permit)
		}
		switch {
		case a.ticket.dropped:
			g.refunds[a.ticket.sub]++
		case a.permit != nil:
			g.pass(a.ticket, a.ticket.sub, a.permit)
		default:
			g.refused(a)
		}
	}
	g.service(now)
	return unused
}

// refused has a task wait for the cap that it lacks.
func (g *gate) refused(a *acquired) {
	t := a.ticket
	g.refunds[t.sub]++
	for _, c := range g.capsOf(t) {
		if c.key == a.lacks || a.failed {
			c.join(t)
			return
		}
	}
	g.again(t) // the cap is no more
}

// freed takes in that a permit of a key may be free. In turn, it was this node's turn to
// be told: it resigns when nothing here waits any more.
func (g *gate) freed(now time.Time, key string, inTurn bool) {
	c := g.caps[key]
	if c == nil || c.len() == 0 && c.out+c.asking == 0 {
		if inTurn {
			g.resignFrom(key)
		}
		return
	}
	c.gain()
	g.wakeSoon(&c.waitline)
	g.service(now)
}

// takeReady returns the tasks that are to be ready again, by shard.
func (g *gate) takeReady() (ready []readyTask) {
	ready, g.ready = g.ready, nil
	return ready
}

// takePassed returns the tasks that may be held.
func (g *gate) takePassed() (passed []pass) {
	passed, g.passed = g.passed, nil
	return passed
}
