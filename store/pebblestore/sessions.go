package pebblestore

import (
	"sync"
	"time"

	"github.com/ddq-io/ddq/store"
)

// sessions are the leases of nodes. They are not stored: one process uses the
// directory, so those of an earlier one ended with it.
type sessions struct {
	mu     sync.Mutex
	byNode map[string]session // guarded by mu
}

type session struct {
	start   store.Token
	expires time.Time
	ttl     time.Duration
	addr    string
}

// lives reports whether the session lasts. One that ends far later than it can is of a
// clock that was ahead, and is over.
func (ss session) lives(now time.Time) bool {
	left := ss.expires.Sub(now)
	return left > 0 && left <= 2*ss.ttl
}

// lives reports whether the session of a node lasts.
func (ss *sessions) lives(node string, now time.Time) bool {
	found, _ := ss.get(node)
	return found.lives(now)
}

func (ss *sessions) get(node string) (session, bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	found, ok := ss.byNode[node]
	return found, ok
}
