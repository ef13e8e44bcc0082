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
	minBlock, maxBlock = 64, 1000

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

func newRateLine(key string, every int, rate store.Rate, lacking *int) *rateLine {
	return &rateLine{waitline: newWaitline(key, every, lacking), urgent: newWaitline(key, every, lacking), rate: rate}
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
		if t := (token{at, r.rate.Before(at)}); t.good(now) {
			return t, true
		}
	}
	return token{}, false
}

// untake gives back the token that was taken last.
func (r *rateLine) untake() { r.blocks[0].next-- }

// left is how many tokens there are that can be used, and when the next of them comes.
func (r *rateLine) left(now time.Time) (n int, next time.Time) {
	for i := range r.blocks {
		b := &r.blocks[i]
		for b.next < b.N && !now.Before(r.rate.Before(b.At(b.next, r.rate))) {
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
