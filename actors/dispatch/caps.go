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
