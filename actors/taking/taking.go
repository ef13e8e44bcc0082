// Package taking makes a store.Take of the calls that stores have had for long: Reserve, Acquire and Free. It is for
// stores that answer ErrNoTake. It is not one step, so other nodes may come between. It looks before it takes, takes
// permits first, which can be given back, and keeps tokens that it took and could not use in hand for the next call.
package taking

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ddq-io/ddq/actors/ordered"
	"github.com/ddq-io/ddq/store"
)

// Taker takes what tasks of one topic need. It has one owner, who makes one call at a time.
type Taker struct {
	Store interface {
		Reserve(ctx context.Context, asked []store.Reservation) ([]store.Tokens, error)
		Acquire(ctx context.Context, asked []store.Acquire) ([]store.Acquired, error)
		Free(ctx context.Context, permits []store.Permit) ([][]string, error)
	}
	Now func() time.Time // that the store has reached

	rates map[store.LimitKey]*rate
	most  int            // of them, before they are looked through
	owed  []store.Permit // that were taken and not used, and could not be freed yet
}

// mostRounds is how often wants that lack a permit have those behind them looked at in one call.
const mostRounds = 8

// permitRetry is when a permit is asked for again, if nobody tells.
const permitRetry = time.Second

// want is one that is not answered yet.
type want struct {
	i      int // of the wants of the call
	rates  []*rate
	permit store.Permit   // its holder
	caps   []store.Permit // that it has
	over   bool           // it lacks a token, and is dead-lettered for that
}

// call is one Take at work.
type call struct {
	*Taker
	*store.Take
	now     time.Time
	ahead   time.Duration
	looked  bool
	wants   []store.Taking
	holders []store.Token // by want
	free    []store.Permit
	full    bool // a cap of all tasks: the wants behind lack it, too
}

// Take does what store.Taker says, but for Call. It sorts Holders: the i-th want that is granted has the i-th. After an
// error what it took is given back, and Back is in hand: it is left out of q.
func (t *Taker) Take(ctx context.Context, q *store.Take) (*store.TakeReply, error) {
	c := &call{Taker: t, Take: q, now: t.Now(), ahead: q.Ahead(), wants: make([]store.Taking, len(q.Wants)), holders: make([]store.Token, len(q.Wants))}
	t.back(q)
	q.Back = nil
	notices, err := c.end(ctx)
	if err == nil {
		err = c.wantsOf(ctx)
	}
	t.sweep(c.now)
	told, freeErr := c.freeAll(ctx, c.free)
	if freeErr != nil {
		t.owed = append(t.owed, c.free...)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s", store.ErrUnavailable, err.Error()) // not that it is unknown: it would be repeated
	}
	c.sortHolders()
	return &store.TakeReply{Now: c.now, Wants: c.wants, Notices: append(notices, told...)}, nil
}

// end ends Free and Leave.
func (c *call) end(ctx context.Context) ([]store.Notice, error) {
	free, asked := append(c.Free, c.owed...), []store.Acquire(nil)
	for _, l := range c.Leave {
		if !l.Rate {
			asked = append(asked, store.Acquire{Key: l.Key, Node: store.LineName(c.Node, c.Topic, l.Key)})
		}
	}
	if len(asked) > 0 {
		got, err := c.Store.Acquire(ctx, asked)
		if err != nil {
			return nil, err
		}
		for i, a := range asked {
			if got[i].InUse < c.Limits.Cap(a.Key.Key) {
				free = append(free, store.Permit{Key: a.Key}) // of nobody: to hear who waits
			}
		}
	}
	notices, err := c.freeAll(ctx, free)
	if err == nil {
		c.owed = nil
	}
	return notices, err
}

// freeAll frees permits, and returns whom to tell: as many of those in line as there are permits.
func (c *call) freeAll(ctx context.Context, permits []store.Permit) (notices []store.Notice, err error) {
	if len(permits) == 0 {
		return nil, nil
	}
	waiting, err := c.Store.Free(ctx, permits)
	if err != nil {
		return nil, err
	}
	given := make(map[store.LimitKey]int)
	for i, p := range permits {
		if at := given[p.Key]; at < len(waiting[i]) {
			n := store.Notice{Limit: store.Limit{Key: p.Key}}
			n.Node, n.Topic = store.FromLine(waiting[i][at], c.Topic)
			notices = append(notices, n)
			given[p.Key]++
		}
	}
	return notices, nil
}

// wantsOf takes what the wants need.
func (c *call) wantsOf(ctx context.Context) error {
	pending := make([]*want, len(c.Wants))
	for i := range c.Wants {
		pending[i] = &want{i: i, rates: c.ratesOf(c.Take, &c.Wants[i])}
		for _, r := range pending[i].rates {
			r.tidy(c.now)
		}
	}
	err := c.look(ctx, pending)
	var able []*want
	left := c.Holders
	for round := 0; round < mostRounds && err == nil && !c.full && len(left) > 0 && len(pending) > 0; round++ {
		var asks []*want
		asks, pending = c.able(pending, left)
		err = c.permits(ctx, asks)
		left = slices.Clip(left[len(asks):])
		for _, w := range asks {
			if !w.over {
				for _, r := range w.rates {
					r.asked--
				}
			}
			if c.wants[w.i].Status == store.NoPermit {
				c.free = append(c.free, w.caps...)
				left = append(left, w.permit.Holder)
			} else {
				able = append(able, w)
			}
		}
	}
	if err != nil {
		for _, w := range able {
			c.free = append(c.free, w.caps...)
		}
		return err
	}
	return c.tokens(ctx, able)
}

// sortHolders puts the holders of those that are granted first.
func (c *call) sortHolders() {
	used := make(map[store.Token]bool)
	var all []store.Token
	for i := range c.wants {
		if c.wants[i].Status == store.Granted {
			used[c.holders[i]] = true
			all = append(all, c.holders[i])
		}
	}
	for _, h := range c.Holders {
		if !used[h] {
			all = append(all, h)
		}
	}
	c.Holders = all
}

// able are the wants that may have tokens, as many as there are holders. Those before them that lack one are answered.
func (c *call) able(pending []*want, holders []store.Token) (asks, rest []*want) {
	for at, w := range pending {
		if len(asks) == len(holders) {
			return asks, append(rest, pending[at:]...)
		}
		lacks := c.lacking(w)
		switch {
		case lacks == nil:
			for _, r := range w.rates {
				r.there--
				r.asked++
			}
		case lacks.asked > 0: // who is before it may not get its permits
			rest = append(rest, w)
			continue
		case !c.Limits.DeadLetter:
			c.noToken(w, lacks)
			continue
		default:
			w.over = true
			c.wants[w.i].Lacks = store.Limit{Key: lacks.key, Rate: true}
		}
		w.permit = store.Permit{Holder: holders[len(asks)], Until: c.Until}
		asks = append(asks, w)
	}
	return asks, rest
}

func (c *call) lacking(w *want) *rate {
	if !c.looked {
		return nil
	}
	for _, r := range w.rates {
		if r.there <= 0 {
			return r
		}
	}
	return nil
}

// permits asks for those of the key, the topic and the namespace, one after another.
func (c *call) permits(ctx context.Context, asks []*want) error {
	byKey := make(map[string][]*want)
	for _, w := range asks {
		if key := c.Wants[w.i].CapKey; key != "" && c.Limits.KeyConcurrency > 0 {
			byKey[key] = append(byKey[key], w)
		}
	}
	err := c.acquire(ctx, byKey)
	for _, key := range [...]string{"", store.NamespaceCap} {
		if c.Limits.Cap(key) > 0 && err == nil {
			left := slices.DeleteFunc(slices.Clone(asks), func(w *want) bool { return c.wants[w.i].Status == store.NoPermit })
			err = c.acquire(ctx, map[string][]*want{key: left})
		}
	}
	if err != nil { // what may have been taken
		for _, w := range asks {
			for _, key := range [...]string{c.Wants[w.i].CapKey, "", store.NamespaceCap} {
				if c.Limits.Cap(key) > 0 && (key != "" || c.Limits.Concurrency > 0) {
					c.free = append(c.free, store.Permit{Key: store.CapKey(c.Topic, key), Holder: w.permit.Holder})
				}
			}
		}
	}
	return err
}

func (c *call) acquire(ctx context.Context, byKey map[string][]*want) error {
	var asked []store.Acquire
	var groups [][]*want
	for key, wants := range ordered.All(byKey, cmp.Compare) {
		if len(wants) == 0 {
			continue
		}
		k := store.CapKey(c.Topic, key)
		q := store.Acquire{Key: k, Max: c.Limits.Cap(key), Node: store.LineName(c.Node, c.Topic, k), Until: c.Until}
		for _, w := range wants {
			q.Holders = append(q.Holders, w.permit.Holder)
		}
		asked, groups = append(asked, q), append(groups, wants)
	}
	if len(asked) == 0 {
		return nil
	}
	got, err := c.Store.Acquire(ctx, asked)
	if err != nil {
		return err
	}
	for g, wants := range groups {
		for k, w := range wants {
			if k < got[g].N {
				w.caps = append(w.caps, store.Permit{Key: asked[g].Key, Holder: w.permit.Holder})
				continue
			}
			c.full = c.full || asked[g].Key.Key == "" || asked[g].Key.Key == store.NamespaceCap
			c.wants[w.i] = store.Taking{Status: store.NoPermit, Lacks: store.Limit{Key: asked[g].Key}, Again: c.now.Add(permitRetry)}
			if !w.over {
				for _, r := range w.rates {
					r.there++
				}
			}
		}
	}
	return nil
}

// tokens takes those of wants that have their permits. That comes last: they do not last.
func (c *call) tokens(ctx context.Context, able []*want) error {
	need := make(map[store.LimitKey]int)
	for _, w := range able {
		for _, r := range w.rates {
			if !w.over {
				need[r.key]++
			}
		}
	}
	err := c.reserve(ctx, need)
	for _, w := range able {
		switch {
		case w.over:
			c.wants[w.i].Status = store.OverRate
		case err == nil:
			c.grant(w)
		}
		if c.wants[w.i].Status != store.Granted {
			c.free = append(c.free, w.caps...)
		}
	}
	return err
}

// grant gives a want its tokens, if they all came.
func (c *call) grant(w *want) {
	for _, r := range w.rates {
		if len(r.hand) > 0 {
			continue
		}
		if c.Limits.DeadLetter {
			c.wants[w.i] = store.Taking{Status: store.OverRate, Lacks: store.Limit{Key: r.key, Rate: true}}
			return
		}
		c.noToken(w, r)
		return
	}
	got := store.Taking{Status: store.Granted, At: c.now}
	for _, r := range w.rates {
		t := r.hand[0]
		r.hand = r.hand[1:]
		mark := store.TokenMark{Kind: r.Kind, From: t.at.UnixMicro(), To: t.before.UnixMicro()}
		if r.key.Key != "" {
			got.Receipt.RateKey, got.Receipt.Key = r.key.Key, mark
		} else {
			got.Receipt.Topic = mark
		}
		if t.at.After(got.At) {
			got.At = t.at
		}
		if got.Before.IsZero() || t.before.Before(got.Before) {
			got.Before = t.before
		}
	}
	c.wants[w.i], c.holders[w.i] = got, w.permit.Holder
}

func (c *call) noToken(w *want, r *rate) {
	again := r.next.Add(-c.ahead)
	if gather := c.now.Add(store.TokenHorizon / 2); r.Kind == store.TokenBucket && r.Spacing() < store.TokenHorizon/2 && again.Before(gather) {
		again = gather
	}
	c.wants[w.i] = store.Taking{Status: store.NoToken, Lacks: store.Limit{Key: r.key, Rate: true}, Again: again}
}
