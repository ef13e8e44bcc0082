package taking

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/ddq-io/ddq/actors/ordered"
	"github.com/ddq-io/ddq/store"
)

// rate is a rate as the last calls saw it.
type rate struct {
	store.Rate
	key  store.LimitKey
	hand []token // that were taken, and not used

	there  int // tokens that may be taken in this call, with those in hand
	asked  int // others, for which permits are asked for
	next   time.Time
	counts []taken // of a window: what this node took of it lately
}

type token struct{ at, before time.Time }

type taken struct {
	at time.Time
	n  int
}

// tokenLeft is how long a token of a bucket that is in hand must last to be of use.
const tokenLeft = 250 * time.Millisecond

// ratesOf are the rates that a want is under.
func (t *Taker) ratesOf(q *store.Take, w *store.Want) (all []*rate) {
	if w.RateKey != "" && q.Limits.KeyRate.Limited() {
		all = append(all, t.rate(store.LimitKey{Topic: q.Topic, Key: w.RateKey}, q.Limits.KeyRate))
	}
	if q.Limits.Rate.Limited() {
		all = append(all, t.rate(store.LimitKey{Topic: q.Topic}, q.Limits.Rate))
	}
	return all
}

func (t *Taker) rate(key store.LimitKey, of store.Rate) *rate {
	r := t.rates[key]
	if r == nil || r.Rate != of {
		if t.rates == nil {
			t.rates = make(map[store.LimitKey]*rate)
		}
		r = &rate{Rate: of, key: key}
		t.rates[key] = r
	}
	return r
}

// farAhead is how far ahead of the present no moment is that the store told: beyond the horizon, and what a
// node's idea of the store's clock is off. What lies there is of a clock that was set back since.
const farAhead = 500 * time.Millisecond

// tidy forgets what does not count any more.
func (r *rate) tidy(now time.Time) {
	r.hand = slices.DeleteFunc(r.hand, func(k token) bool { return !r.good(k, now) })
	r.counts = slices.DeleteFunc(r.counts, func(x taken) bool {
		return now.Sub(x.at) > r.Period+4*r.Slot() || x.at.After(now.Add(farAhead))
	})
}

// back takes back what was not used.
func (t *Taker) back(q *store.Take) {
	for _, b := range q.Back {
		for key, m := range map[string]store.TokenMark{b.RateKey: b.Key, "": b.Topic} {
			if r := t.rates[store.LimitKey{Topic: q.Topic, Key: key}]; r != nil && m.To != 0 && r.Kind == m.Kind {
				r.hand = append(r.hand, token{time.UnixMicro(m.From).UTC(), time.UnixMicro(m.To).UTC()})
				slices.SortFunc(r.hand, func(a, b token) int { return a.before.Compare(b.before) })
			}
		}
	}
}

func (r *rate) good(k token, now time.Time) bool {
	if k.at.After(now.Add(farAhead)) {
		return false
	}
	if r.Kind == store.TokenBucket {
		now = now.Add(tokenLeft)
	}
	return now.Before(k.before)
}

// look finds out how many tokens there are, where some would be taken in vain otherwise: because a permit or a
// token of another rate is lacking. That of a window is not known: there is one at least, and no fewer than
// this node left.
func (c *call) look(ctx context.Context, pending []*want) error {
	c.looked = c.Limits.Capped() || c.Limits.KeyRate.Limited() && (c.Limits.Rate.Limited() || len(c.Wants) > len(c.Holders))
	if !c.looked {
		return nil
	}
	rates := make(map[store.LimitKey]*rate)
	for _, w := range pending {
		for _, r := range w.rates {
			rates[r.key] = r
		}
	}
	var asked []store.Reservation
	var of []*rate
	for key, r := range ordered.All(rates, compareKeys) {
		asked, of = append(asked, store.Reservation{Key: key, Rate: r.Rate, Ahead: c.ahead}), append(of, r)
	}
	if len(asked) == 0 {
		return nil
	}
	got, err := c.Store.Reserve(ctx, asked)
	if err != nil {
		return err
	}
	for i, r := range of {
		c.now = got[i].Now
		r.see(got[i], c.ahead, c.Limits.DeadLetter)
	}
	return nil
}

// see records what there is of a rate.
func (r *rate) see(got store.Tokens, ahead time.Duration, all bool) {
	r.there, r.next = 0, got.First
	limit := got.Now.Add(ahead)
	switch {
	case got.First.After(limit):
	case r.Kind == store.TokenBucket:
		for r.there < r.Most()+store.MaxWants && !r.next.After(limit) {
			r.there++
			r.next = got.First.Add(r.Span(r.there))
		}
	case all:
		r.there = r.Count
	default:
		r.there = r.Count
		for _, t := range r.counts {
			if got.Now.Sub(t.at) < r.Period+3*r.Slot() {
				r.there -= t.n
			}
		}
		r.there = max(1, r.there)
	}
	r.there += len(r.hand)
}

// reserve takes tokens, and has them in hand with those that were.
func (c *call) reserve(ctx context.Context, need map[store.LimitKey]int) error {
	var asked []store.Reservation
	for key, n := range ordered.All(need, compareKeys) {
		r := c.Taker.rates[key]
		if n -= len(r.hand); n > 0 {
			asked = append(asked, store.Reservation{Key: key, Rate: r.Rate, N: n, Ahead: c.ahead, Life: c.Life})
		}
	}
	if len(asked) == 0 {
		return nil
	}
	got, err := c.Store.Reserve(ctx, asked)
	if err != nil {
		return err
	}
	for i, q := range asked {
		r := c.Taker.rates[q.Key]
		c.now = got[i].Now
		for k := range got[i].N {
			at := got[i].At(k, r.Rate)
			r.hand = append(r.hand, token{at, r.SlotEnd(at, c.Life)})
		}
		if got[i].N > 0 && r.Kind == store.SlidingWindow {
			r.counts = append(r.counts, taken{got[i].Now, got[i].N})
		}
		if got[i].N < q.N {
			r.there = 0
		}
		switch {
		case got[i].N == 0:
			r.next = got[i].First
		case r.Kind == store.TokenBucket:
			r.next = got[i].First.Add(r.Span(got[i].N))
		default:
			r.next = got[i].Now // it is not known when the next one comes: asked again, it is
		}
	}
	return nil
}

// sweep forgets rates of which nothing is known that counts, once they have doubled.
func (t *Taker) sweep(now time.Time) {
	if len(t.rates) < t.most {
		return
	}
	for key, r := range t.rates {
		if r.tidy(now); len(r.counts)+len(r.hand) == 0 {
			delete(t.rates, key)
		}
	}
	t.most = 2*len(t.rates) + 64
}

func compareKeys(a, b store.LimitKey) int {
	return cmp.Or(strings.Compare(a.Topic, b.Topic), strings.Compare(a.Key, b.Key))
}
