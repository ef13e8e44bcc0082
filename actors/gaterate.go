package actors

import (
	"time"

	"github.com/ddq-io/ddq/store"
)

const (
	// rateAhead is how far ahead a node reserves tokens for tasks that wait. Nodes
	// whose blocks of tokens do not fit in it ask for nothing.
	rateAhead = 2 * time.Second

	// A block is what a quarter of a second has, but not fewer nor more than this.
	minBlock, maxBlock = 64, 4096

	// maxCleared is how many tasks of a rate with a token may be on their way to a
	// worker: what comes of more tokens than workers can take is lost.
	maxCleared = 512
)

// rateLine is a rate as this node sees it: the tokens that it has reserved, and the
// tasks that wait for one.
type rateLine struct {
	waitline
	urgent waitline // those that have a claim to a permit, which is idle meanwhile: they go first
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

func newRateLine(key string, every int, rate store.Rate, count *int) *rateLine {
	return &rateLine{waitline: newWaitline(key, every, count), urgent: newWaitline(key, every, count), rate: rate}
}

// len is how many tasks wait.
func (r *rateLine) len() int { return r.waitline.len() + r.urgent.len() }

// of is where a task waits.
func (r *rateLine) of(t *ticket) *waitline {
	if len(t.claims) > 0 {
		return &r.urgent
	}
	return &r.waitline
}

// next is where the one waits that goes next.
func (r *rateLine) next() *waitline {
	if r.urgent.len() > 0 {
		return &r.urgent
	}
	return &r.waitline
}

// take returns a token that has come, if there is one.
func (r *rateLine) take(now time.Time) (token, bool) {
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

// takeBefore is until when the token of a moment can be taken: the task that has it has
// a way to go. In a sliding window tokens may be shorter than that.
func (r *rateLine) takeBefore(moment time.Time) time.Time {
	before := r.rate.Before(moment)
	if r.rate.Kind == store.TokenBucket {
		return before.Add(-wayLeft)
	}
	return before
}

// untake gives back the token that was taken last.
func (r *rateLine) untake() { r.blocks[0].next-- }

// left is how many tokens there are that can be used, and when the next of them comes.
func (r *rateLine) left(now time.Time) (n int, next time.Time) {
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
func (r *rateLine) block() int {
	quarter := int(time.Second / 4 / max(1, r.rate.Spacing()))
	return min(max(quarter, minBlock), maxBlock)
}

// step is how long more tokens may gather before they are asked for: enough for
// most of a block.
func (r *rateLine) step() time.Duration {
	return min(rateAhead/2, minBlock*r.rate.Spacing())
}

// reserved takes in what a reservation came to.
func (r *rateLine) reserved(got store.Tokens) {
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

// slow reports whether a task may wait for so long that others should go meanwhile.
func (r *rateLine) slow() bool { return r.rate.Spacing() > rateAhead/4 }

// serveRate lets out tasks for which there is a token, and asks for more tokens.
func (g *gate) serveRate(now time.Time, r *rateLine) {
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
		if other := g.lacking(now, next, &r.waitline); other != nil {
			g.waitFor(other, next)
			continue
		}
		g.letOut(&r.waitline, next)
	}
	left, next := r.left(now)
	switch {
	case left > 0 && r.len() == 0:
		g.alarms.set(&r.waitline, now.Add(rateAhead)) // they are gone by then
	case left > 0 && next.After(now):
		g.alarms.set(&r.waitline, next)
	}
	switch {
	case r.len() == 0 && left+r.asking+r.out == 0:
		delete(g.rates, r.key)
	case r.len() <= left || r.asking > 0 || left > r.block()/4 || r.out >= maxCleared:
	case r.askAt.After(now):
		g.alarms.set(&r.waitline, r.askAt)
	default:
		r.asking = min(r.len()-left, r.block())
		g.reserve = append(g.reserve, r)
	}
}

// lacking takes the tokens that a task lacks, and returns the first rate that has none
// for it, nil when it has all. It was let out of the line cleared, nil for none.
func (g *gate) lacking(now time.Time, t *ticket, cleared *waitline) *rateLine {
	for _, r := range g.ratesOf(t) {
		if t.tokens[r.which].good(now) {
			continue
		}
		var ok bool
		if r.len() == 0 || cleared == &r.waitline || len(t.claims) > 0 && r.urgent.len() == 0 {
			t.tokens[r.which], ok = r.take(now)
		}
		if !ok {
			return r
		}
	}
	return nil
}

// waitFor has a task wait for a token.
func (g *gate) waitFor(r *rateLine, t *ticket) {
	if r.slow() {
		g.unclaim(t, g.capsOf(t))
	}
	g.passTurns(t)
	g.join(r.of(t), t)
}

// claimant takes the next task out of a rate's line, with a claim at each of its caps, so
// that no token is spent on one that could not go. Those that lack a permit wait for
// that instead.
func (g *gate) claimant(r *rateLine) *ticket {
	for r.len() > 0 {
		t := g.first(r.next())
		caps := g.capsOf(t)
		if c := t.lacks(caps); c != nil {
			g.untry(t, caps)
			g.join(&c.waitline, t)
			continue
		}
		for _, c := range caps {
			c.claim(t)
		}
		return t
	}
	return nil
}

func (g *gate) letOut(l *waitline, t *ticket) {
	t.cleared = l
	l.out++
	g.again(t)
}

// takeReservations returns what to ask the store for, for each key once, and for no more
// tokens than can be on their way, see congestion; 0 is any number.
func (g *gate) takeReservations(most int) (asked []reservation) {
	lines := g.reserve
	g.reserve = nil
	for _, r := range lines {
		if most > 0 {
			r.asking = min(r.asking, most)
		}
		q := store.Reservation{Key: store.LimitKey{Topic: g.topic, Key: r.key}, Rate: r.rate, N: r.asking, Ahead: rateAhead}
		if g.limits.DeadLetter {
			q.Ahead = 0
		}
		asked = append(asked, reservation{r, q})
	}
	return asked
}

// reserved takes in what reservations came to; those of lines that are no more are
// lost.
func (g *gate) reserved(now time.Time, asked []reservation, got []store.Tokens, failed bool) {
	for i := range asked {
		r := asked[i].line
		if g.rates[r.key] != r {
			continue
		}
		if failed {
			r.asking, r.askAt = 0, now.Add(storeRetry)
		} else {
			over := r.asking - got[i].N
			r.reserved(got[i])
			if g.limits.DeadLetter {
				g.doom(now, r, over)
			}
		}
		g.wakeSoon(&r.waitline)
	}
	g.service(now)
}

// doom lets tasks out that came when there was no token: those behind the ones that
// have one.
func (g *gate) doom(now time.Time, r *rateLine, over int) {
	r.askAt = time.Time{}
	left, _ := r.left(now)
	var lucky []*ticket
	for range min(left, r.len()) {
		lucky = append(lucky, g.first(r.next()))
	}
	for range min(over, r.len()) {
		t := g.first(r.next())
		t.doomed = true
		g.letOut(&r.waitline, t)
	}
	for _, t := range lucky {
		r.of(t).join(t)
	}
}
