package actors

import (
	"time"

	"github.com/ddq-io/ddq/store"
)

// capRetry is how often a cap is tried by tasks that wait, should nobody tell that a
// permit is free. It keeps this node's turn, see store.WaitLife.
const capRetry = time.Second

// capLine is a cap as this node sees it: the tasks that wait for a permit.
type capLine struct {
	waitline
	max    int
	asking int // permits that are being asked for
	retry  time.Time
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
