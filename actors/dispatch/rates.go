package dispatch

import (
	"slices"
	"time"

	"github.com/ddq-io/ddq/store"
)

const (
	// rateAhead is how far ahead a node reserves tokens of a bucket for tasks that wait.
	// Nodes whose blocks of tokens do not fit in it ask for nothing.
	rateAhead = 2 * time.Second

	// A block is what a quarter of a second has, but not fewer nor more than this.
	minBlock, maxBlock = 64, store.MaxReserve

	// maxCleared is how many tasks of a rate with a token may be in flight to workers:
	// tokens beyond what workers can take are lost.
	maxCleared = 512
)

// rateLimit is a rate as this node sees it: the tokens that it has reserved, and the
// tasks that wait for one.
type rateLimit struct {
	waitQueue
	urgent waitQueue // those that have what would be lost: a claim to a permit, or a token of a window
	rate   store.Rate
	which  int // of a ticket's tokens
	blocks []block
	asking int       // tokens that were asked for: 0 no
	askAt  time.Time // not before
	wants  bool      // it is in reserve or windows of the limiter
	reach  int       // of a window, see came
}

// block are tokens that were reserved together.
type block struct {
	store.Tokens
	next int
}

func newRateLine(key string, every int, rate store.Rate, count *int) *rateLimit {
	return &rateLimit{waitQueue: newWaitQueue(key, every, count), urgent: newWaitQueue(key, every, count), rate: rate, reach: 1}
}

// window reports whether the tokens end so soon that they are taken only for tasks that
// have room at a worker.
func (r *rateLimit) window() bool { return r.rate.Kind == store.SlidingWindow }

// ahead is how far ahead tokens are reserved. Nobody knows what room there will be when a
// token of a window comes.
func (r *rateLimit) ahead() time.Duration {
	if r.window() {
		return 0
	}
	return rateAhead
}

// sooner reports whether a task waits for a token of r before it waits for one of another
// rate: those of buckets last, of two buckets the slower is waited for longer, and of two
// windows the one that was used up last.
func (r *rateLimit) sooner(o *rateLimit) bool {
	switch {
	case r.window() != o.window():
		return o.window()
	case r.window() && !r.askAt.Equal(o.askAt):
		return r.askAt.After(o.askAt)
	}
	return r.rate.Spacing() > o.rate.Spacing()
}

// dry reports whether a window is known to have no token for a while.
func (r *rateLimit) dry(now time.Time) bool {
	if !r.window() || !r.askAt.After(now) {
		return false
	}
	left, _ := r.left(now)
	return left == 0
}

// came records that a task that was let out came back to the limiter. How much room workers
// of other nodes have is not known here: so many are let out for them as come in time.
func (r *rateLimit) came(inTime, onDemand bool) {
	switch {
	case !inTime:
		r.reach = max(1, r.reach/2)
	case onDemand:
		r.reach = min(r.reach+1, maxCleared)
	}
}

// len is how many tasks wait.
func (r *rateLimit) len() int { return r.waitQueue.len() + r.urgent.len() }

// of is where a task waits.
func (r *rateLimit) of(t *Ticket) *waitQueue {
	if r.isUrgent(t) {
		return &r.urgent
	}
	return &r.waitQueue
}

func (r *rateLimit) isUrgent(t *Ticket) bool {
	return len(t.claims) > 0 || r.window() && !t.tokens[1-r.which].before.IsZero()
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
	case got.N == 0 && r.window():
		r.askAt = got.First
		return
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

// rateLimits are the rates that tasks are under. They let a task out when there is a token
// for it, and ask for tokens for those that wait.
type rateLimits struct {
	capLimits
	rates  map[string]*rateLimit // by key; empty: the topic's
	coming int                   // tokens of windows that are asked for

	// Gathered until assigner.reserve takes it.
	reserve []*rateLimit // buckets that want tokens
	windows []*rateLimit // the same; they stay until there is room
}

// ratesOf are the rates of a task in the order in which it waits for them: what is waited
// for long is had before what comes soon and does not last.
func (g *rateLimits) ratesOf(t *Ticket) (rates []*rateLimit) {
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

func (g *rateLimits) rate(key string, rate store.Rate) *rateLimit {
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

// serveRate lets out tasks for which there is a token, and asks for more tokens.
func (g *rateLimits) serveRate(now time.Time, r *rateLimit) {
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
			if other.dry(now) { // by then it would have ended
				next.tokens[r.which] = token{}
				r.untake()
			}
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
	case r.len() <= left || r.wants || r.asking > 0 || left > r.block()/4 || r.out >= maxCleared:
	case g.askAt(now, r).After(now):
		g.alarms.set(&r.waitQueue, g.askAt(now, r))
	default:
		g.want(r)
	}
}

// want has tokens of a rate asked for. Rates whose tasks have something to lose go first.
func (g *rateLimits) want(r *rateLimit) {
	r.wants = true
	switch {
	case !r.window():
		g.reserve = append(g.reserve, r)
	case r.urgent.len() > 0:
		g.windows = slices.Insert(g.windows, 0, r)
	default:
		g.windows = append(g.windows, r)
	}
}

// askAt is before when not to ask for tokens of a rate: those of a key whose topic's window
// has none would end before one comes.
func (g *rateLimits) askAt(now time.Time, r *rateLimit) time.Time {
	if all := g.rates[""]; all != nil && all != r && r.window() && all.dry(now) && all.askAt.After(r.askAt) {
		return all.askAt
	}
	return r.askAt
}

// lacking takes the tokens that a task lacks, and returns the first rate that has none
// for it, nil when it has all. It was let out of the queue cleared, nil for none.
func (g *rateLimits) lacking(now time.Time, t *Ticket, cleared *waitQueue) *rateLimit {
	rates := g.ratesOf(t)
	for _, r := range rates {
		if r.dry(now) && !t.tokens[r.which].good(now) {
			return r
		}
	}
	for _, r := range rates {
		if t.tokens[r.which].good(now) {
			continue
		}
		var ok bool
		if r.len() == 0 || cleared == &r.waitQueue || r.isUrgent(t) && r.urgent.len() == 0 {
			t.tokens[r.which], ok = r.take(now)
		}
		if !ok {
			return r
		}
	}
	return nil
}

// waitFor has a task wait for a token.
func (g *rateLimits) waitFor(r *rateLimit, t *Ticket) {
	if r.slow() {
		g.unclaim(t, g.capsOf(t))
	}
	g.passTurns(t)
	g.join(r.of(t), t)
}

// claimant takes the next task out of a rate's queue, with a claim at each of its caps, so
// that no token is spent on one that could not go. Those that lack a permit wait for
// that instead.
func (g *rateLimits) claimant(r *rateLimit) *Ticket {
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

func (g *rateLimits) letOut(l *waitQueue, t *Ticket) {
	t.cleared = l
	l.out++
	g.again(t)
}

// reservations appends what to ask the store for, for each key once, and for no more
// tokens than tasks may be assigned and not held. Windows are asked for as many as there is
// room for, and the others when there is some.
func (g *rateLimits) reservations(now time.Time, to []Reservation, v vacancy) []Reservation {
	for _, r := range g.reserve {
		if g.rates[r.key] == r {
			to = g.askFor(to, r, min(g.wanted(now, r), v.bound()))
		}
	}
	empty(&g.reserve)
	kept := g.windows[:0]
	for i, r := range g.windows {
		if v.room <= g.coming && !v.remote {
			kept = append(kept, g.windows[i:]...)
			break
		}
		if g.rates[r.key] != r {
			continue
		}
		wanted, fit := g.wanted(now, r), max(0, v.room-g.coming)+v.elsewhere(r)
		if wanted > 0 && fit == 0 {
			kept = append(kept, r)
			continue
		}
		to = g.askFor(to, r, min(wanted, fit, v.bound()))
		g.coming += r.asking
	}
	clear(g.windows[len(kept):])
	g.windows = kept
	return to
}

// wanted is how many tokens of a rate its tasks lack, in one block.
func (g *rateLimits) wanted(now time.Time, r *rateLimit) int {
	left, _ := r.left(now)
	return min(r.len()-left, r.block())
}

// askFor asks for n tokens of one rate.
func (g *rateLimits) askFor(to []Reservation, r *rateLimit, n int) []Reservation {
	r.wants, r.asking = false, max(0, n)
	if r.asking == 0 {
		return to
	}
	q := store.Reservation{Key: store.LimitKey{Topic: g.topic, Key: r.key}, Rate: r.rate, N: r.asking, Ahead: r.ahead()}
	if g.limits.DeadLetter {
		q.Ahead = 0
	}
	return append(to, Reservation{r, q})
}

// doom lets tasks out that came when there was no token: those behind the ones that
// have one.
func (g *rateLimits) doom(now time.Time, r *rateLimit, over int) {
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
	rate  *rateLimit
	Asked store.Reservation
}
