package dispatch

import (
	"slices"
	"time"

	"github.com/ddq-io/ddq/store"
)

// capRetry is how often a cap is tried by tasks that wait, should nobody tell that a
// permit is free. It keeps this node's turn, see store.WaitLife.
const capRetry = time.Second

// capLimit is a cap as this node sees it: the tasks that wait for a permit. Its out are
// tasks that were let out and did not ask yet: each has a claim to one of free.
type capLimit struct {
	waitQueue
	max    int
	free   int // permits that are believed to be free, without those that are being asked for
	asking int
	retry  time.Time // when to try without having been told
	inTurn bool      // this node was refused: the store keeps a permit for it, see store.WaitLife
}

// room is how many permits nobody here has a claim to.
func (c *capLimit) room() int { return c.free - c.out }

// gain records that one more permit may be free.
func (c *capLimit) gain() { c.free = min(c.free+1, c.max) }

// claim lets a task go for a permit.
func (c *capLimit) claim(t *Ticket) {
	if slices.Contains(t.claims, c) {
		return
	}
	t.tried, t.claims = append(t.tried, c), append(t.claims, c)
	c.out++
}

// lacks returns the first of a task's caps that it may not ask for a permit, nil for none.
func (t *Ticket) lacks(caps []*capLimit) *capLimit {
	for _, c := range caps {
		tried := slices.Contains(t.tried, c)
		if !slices.Contains(t.claims, c) && (c.room() <= 0 || !tried && c.len() > 0) {
			return c
		}
	}
	return nil
}

// answered records what asking for a permit came to.
func (c *capLimit) answered(a *Acquired) {
	c.asking = max(0, c.asking-1)
	switch {
	case a.Permit != nil:
		c.inTurn = false
		c.free = max(c.free, min(a.Room-c.asking, c.max))
	case a.Lacks == c.key && !a.Failed:
		c.free, c.inTurn = 0, true
	default: // it was not taken, or given back
		c.gain()
	}
}

// capLimits are the caps that tasks are under. They let a task out when there may be a
// permit for it, and ask for permits for those that have all else.
type capLimits struct {
	waitlist
	caps map[string]*capLimit // by key; empty: the topic's, store.NamespaceCap: that of its namespace

	// Gathered until assigner.admitted takes it.
	ask    []*Ticket        // permits
	resign []store.LimitKey // caps that this node waits for no longer
}

// capsOf are the caps of a task, that of its key first and that of the namespace last.
func (g *capLimits) capsOf(t *Ticket) (caps []*capLimit) {
	if t.capKey != "" && g.limits.KeyConcurrency > 0 {
		caps = append(caps, g.cap(t.capKey, g.limits.KeyConcurrency))
	}
	if g.limits.Concurrency > 0 {
		caps = append(caps, g.cap("", g.limits.Concurrency))
	}
	if g.limits.Namespace > 0 {
		caps = append(caps, g.cap(store.NamespaceCap, g.limits.Namespace))
	}
	return caps
}

func (g *capLimits) cap(key string, most int) *capLimit {
	c := g.caps[key]
	if c == nil {
		c = &capLimit{waitQueue: newWaitQueue(key, g.every, &g.waits.permits), max: most, free: most}
		g.caps[key] = c
	}
	return c
}

// passTurns lets other nodes go where this one's turn is of no use, because the task that
// it was for lacks a token.
func (g *capLimits) passTurns(t *Ticket) {
	for _, c := range t.claims {
		if c.len() == 0 {
			g.passTurn(c)
		}
	}
}

func (g *capLimits) passTurn(c *capLimit) {
	if c.inTurn {
		c.inTurn = false
		g.resignFrom(c.key)
	}
}

func (g *capLimits) resignFrom(key string) {
	g.resign = append(g.resign, store.CapKey(g.topic, key))
}

// serveCap lets out tasks for which there may be permits; when nobody has told of any
// for a while, one to try.
func (g *capLimits) serveCap(now time.Time, c *capLimit) {
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

// refused has a task wait for the cap that it lacks.
func (g *capLimits) refused(a *Acquired) {
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

// Permit is a task's right to be held under caps.
type Permit struct {
	Holder store.Token
	Keys   []store.LimitKey
	Until  store.Millis
}

// Each returns it as the store names permits, by key.
func (p *Permit) Each() []store.Permit {
	all := make([]store.Permit, len(p.Keys))
	for i, key := range p.Keys {
		all[i] = store.Permit{Key: key, Holder: p.Holder, Until: p.Until}
	}
	return all
}

// Fits records how many permits of a cap are left.
func (r *Acquired) Fits(room int) {
	if r.Room < 0 || room < r.Room {
		r.Room = max(0, room)
	}
}
