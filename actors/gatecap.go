package actors

import (
	"slices"
	"time"

	"github.com/ddq-io/ddq/store"
)

// capRetry is how often a cap is tried by tasks that wait, should nobody tell that a
// permit is free. It keeps this node's turn, see store.WaitLife.
const capRetry = time.Second

// capLine is a cap as this node sees it: the tasks that wait for a permit. Its out are
// tasks that were let out and did not ask yet: each has a claim to one of free.
type capLine struct {
	waitline
	max    int
	free   int // permits that are believed to be free, without those that are being asked for
	asking int
	retry  time.Time // when to try without having been told
	inTurn bool      // this node was refused: the store keeps a permit for it, see store.WaitLife
}

// room is how many permits nobody here has a claim to.
func (c *capLine) room() int { return c.free - c.out }

// gain takes in that one more permit may be free.
func (c *capLine) gain() { c.free = min(c.free+1, c.max) }

// claim lets a task go for a permit.
func (c *capLine) claim(t *ticket) {
	if slices.Contains(t.claims, c) {
		return
	}
	t.tried, t.claims = append(t.tried, c), append(t.claims, c)
	c.out++
}

// lacks returns the first of a task's caps that it may not ask for a permit, nil for none.
func (t *ticket) lacks(caps []*capLine) *capLine {
	for _, c := range caps {
		tried := slices.Contains(t.tried, c)
		if !slices.Contains(t.claims, c) && (c.room() <= 0 || !tried && c.len() > 0) {
			return c
		}
	}
	return nil
}

// answered takes in what asking for a permit came to.
func (c *capLine) answered(a *acquired) {
	c.asking = max(0, c.asking-1)
	switch {
	case a.permit != nil:
		c.inTurn = false
		c.free = max(c.free, min(a.room-c.asking, c.max))
	case a.lacks == c.key && !a.failed:
		c.free, c.inTurn = 0, true
	default: // it was not taken, or given back
		c.gain()
	}
}

// permit is a task's right to be held under caps.
type permit struct {
	holder store.Token
	keys   []store.LimitKey
	until  store.Millis
}

// each returns it as the store names permits, by key.
func (p *permit) each() []store.Permit {
	all := make([]store.Permit, len(p.keys))
	for i, key := range p.keys {
		all[i] = store.Permit{Key: key, Holder: p.holder, Until: p.until}
	}
	return all
}
