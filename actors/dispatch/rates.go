package dispatch

import (
	"slices"
	"time"

	"github.com/ddq-io/ddq/store"
)

const (
	// rateAhead is how far ahead a node reserves tokens for tasks that wait. Nodes
	// whose blocks of tokens do not fit in it ask for nothing.
	rateAhead = 2 * time.Second

	// A block is what a quarter of a second has, but not fewer nor more than this.
	minBlock, maxBlock = 64, store.MaxReserve

	// maxCleared is how many tasks of a rate with a token may be on their way to a
	// worker: what comes of more tokens than workers can take is lost.
	maxCleared = 512
)

// rateLimit is a rate as this node sees it: the tokens that it has reserved, and the
// tasks that wait for one.
type rateLimit struct {
	waitQueue
	urgent waitQueue // those that have a claim to a permit, which is idle meanwhile: they go first
	rate   store.Rate
	which  int // of a ticket's tokens
	blocks []block
	asking int       // tokens that were asked for: 0 no
	askAt  time.Time // not before
}

// block are tokens that were reserved together.
type block struct {
	store.Tokens
	next int
}

func newRateLine(key string, every int, rate store.Rate, count *int) *rateLimit {
	return &rateLimit{waitQueue: newWaitline(key, every, count), urgent: newWaitline(key, every, count), rate: rate}
}

// len is how many tasks wait.
func (r *rateLimit) len() int { return r.waitQueue.len() + r.urgent.len() }

// of is where a task waits.
func (r *rateLimit) of(t *Ticket) *waitQueue {
	if len(t.claims) > 0 {
		return &r.urgent
	}
	return &r.waitQueue
}

// next is where the one waits that goes next.
func (r *rateLimit) next() *waitQueue {
	if r.urgent.len() > 0 {
		return &r.urgent
	}
	return &r.waitQueue
}

// take returns a token that has come, if there is one.
func (r *rateLimit) take(now time.Time) (token, bool) {
	for len(r.blocks) > 0 {
		b := &r.blocks[0]
		if b.next == b.N {
			r.blocks = r.blocks[1:]
			continue
		}
		at := b.At(b.next, r.rate)
		if at.After(now) {
			return token{}, false
		}
		b.next++
		if now.Before(r.takeBefore(at)) {
			return token{at, r.rate.Before(at)}, true
		}
	}
	return token{}, false
}

// reserveRetry is the pause before tokens are asked for again when the store failed.
const reserveRetry = time.Second

// tokenLeft is how long the token of a bucket must last when it is taken: half of its
// life, and longer than a hold takes.
const tokenLeft = 250 * time.Millisecond

// takeBefore is until when the token of a moment can be taken: the task that has it has
// a way to go. In a sliding window tokens may be shorter than that.
func (r *rateLimit) takeBefore(moment time.Time) time.Time {
	before := r.rate.Before(moment)
	if r.rate.Kind == store.TokenBucket {
		return before.Add(-tokenLeft)
	}
	return before
}

// untake gives back the token that was taken last.
func (r *rateLimit) untake() { r.blocks[0].next-- }

// left is how many tokens there are that can be used, and when the next of them comes.
func (r *rateLimit) left(now time.Time) (n int, next time.Time) {
	for i := range r.blocks {
		b := &r.blocks[i]
		for b.next < b.N && !now.Before(r.takeBefore(b.At(b.next, r.rate))) {
			b.next++
		}
		if b.next < b.N {
			if n == 0 {
				next = b.At(b.next, r.rate)
			}
			n += b.N - b.next
		}
	}
	return n, next
}

// block is how many tokens are asked for at a time.
func (r *rateLimit) block() int {
	quarter := int(time.Second / 4 / max(1, r.rate.Spacing()))
	return min(max(quarter, minBlock), maxBlock)
}

// step is how long more tokens may gather before they are asked for: enough for
// most of a block.
func (r *rateLimit) step() time.Duration {
	return min(rateAhead/2, minBlock*r.rate.Spacing())
}

// reserved records what a reservation came to.
func (r *rateLimit) reserved(got store.Tokens) {
	asked := r.asking
	r.asking = 0
	switch {
	case got.N == 0:
		r.askAt = got.First.Add(r.step() - rateAhead)
		return
	case got.N < asked && r.rate.Kind == store.TokenBucket:
		r.askAt = got.First.Add(r.rate.Span(got.N) + r.step() - rateAhead)
	}
	r.blocks = append(r.blocks, block{Tokens: got})
}

// clockSet forgets tokens that are further ahead than any are reserved: the clock was ahead
// when they were. The store is asked again, which knows what is left of the rate.
func (r *rateLimit) clockSet(now time.Time) {
	r.askAt = time.Time{}
	r.blocks = slices.DeleteFunc(r.blocks, func(b block) bool {
		return b.At(b.next, r.rate).After(now.Add(2 * rateAhead)) // twice: now may be a little behind the store
	})
}

// slow reports whether a task may wait for so long that others should go meanwhile.
func (r *rateLimit) slow() bool { return r.rate.Spacing() > rateAhead/4 }

// serveRate lets out tasks for which there is a token, and asks for more tokens.
func (g *limiter) serveRate(now time.Time, r *rateLimit) {
	for r.len() > 0 && r.out < maxCleared {
		t, ok := r.take(now)
		if !ok {
			break
		}
		next := g.claimant(r)
		if next == nil {
			r.untake()
			break
		}
		next.tokens[r.which] = t
		if other := g.lacking(now, next, &r.waitQueue); other != nil {
			g.waitFor(other, next)
			continue
		}
		g.letOut(&r.waitQueue, next)
	}
	left, next := r.left(now)
	switch {
	case left > 0 && r.len() == 0:
		g.alarms.set(&r.waitQueue, now.Add(rateAhead)) // they are gone by then
	case left > 0 && next.After(now):
		g.alarms.set(&r.waitQueue, next)
	}
	switch {
	case r.len() == 0 && left+r.asking+r.out == 0:
		delete(g.rates, r.key)
	case r.len() <= left || r.asking > 0 || left > r.block()/4 || r.out >= maxCleared:
	case r.askAt.After(now):
		g.alarms.set(&r.waitQueue, r.askAt)
	default:
		r.asking = min(r.len()-left, r.block())
		g.reserve = append(g.reserve, r)
	}
}

// lacking takes the tokens that a task lacks, and returns the first rate that has none
// for it, nil when it has all. It was let out of the line cleared, nil for none.
func (g *limiter) lacking(now time.Time, t *Ticket, cleared *waitQueue) *rateLimit {
	for _, r := range g.ratesOf(t) {
		if t.tokens[r.which].good(now) {
			continue
		}
		var ok bool
		if r.len() == 0 || cleared == &r.waitQueue || len(t.claims) > 0 && r.urgent.len() == 0 {
			t.tokens[r.which], ok = r.take(now)
		}
		if !ok {
			return r
		}
	}
	return nil
}

// waitFor has a task wait for a token.
func (g *limiter) waitFor(r *rateLimit, t *Ticket) {
	if r.slow() {
		g.unclaim(t, g.capsOf(t))
	}
	g.passTurns(t)
	g.join(r.of(t), t)
}

// claimant takes the next task out of a rate's line, with a claim at each of its caps, so
// that no token is spent on one that could not go. Those that lack a permit wait for
// that instead.
func (g *limiter) claimant(r *rateLimit) *Ticket {
	for r.len() > 0 {
		t := g.first(r.next())
		caps := g.capsOf(t)
		if c := t.lacks(caps); c != nil {
			g.untry(t, caps)
			g.join(&c.waitQueue, t)
			continue
		}
		for _, c := range caps {
			c.claim(t)
		}
		return t
	}
	return nil
}

func (g *limiter) letOut(l *waitQueue, t *Ticket) {
	t.cleared = l
	l.out++
	g.again(t)
}

// reservations appends what to ask the store for, for each key once, and for no more
// tokens than tasks may be assigned and not held; most 0 is any number.
func (g *limiter) reservations(to []Reservation, most int) []Reservation {
	for _, r := range g.reserve {
		if most > 0 {
			r.asking = min(r.asking, most)
		}
		q := store.Reservation{Key: store.LimitKey{Topic: g.topic, Key: r.key}, Rate: r.rate, N: r.asking, Ahead: rateAhead}
		if g.limits.DeadLetter {
			q.Ahead = 0
		}
		to = append(to, Reservation{r, q})
	}
	empty(&g.reserve)
	return to
}

// reserved records what reservations came to; those of lines that are no more are
// lost.
func (g *limiter) reserved(now time.Time, asked []Reservation, got []store.Tokens, failed bool) {
	for i := range asked {
		r := asked[i].line
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

// doom lets tasks out that came when there was no token: those behind the ones that
// have one.
func (g *limiter) doom(now time.Time, r *rateLimit, over int) {
	r.askAt = time.Time{}
	left, _ := r.left(now)
	var lucky []*Ticket
	for range min(left, r.len()) {
		lucky = append(lucky, g.first(r.next()))
	}
	for range min(over, r.len()) {
		t := g.first(r.next())
		t.doomed = true
		g.letOut(&r.waitQueue, t)
	}
	for _, t := range lucky {
		r.of(t).join(t)
	}
}

// Reservation is what a rate asks the store for.
type Reservation struct {
	line  *rateLimit
	Asked store.Reservation
}
