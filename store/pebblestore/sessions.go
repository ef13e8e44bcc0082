package pebblestore

import (
	"sync"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
)

// sessions are the leases of nodes. They are not stored: one process uses the
// directory, so those of an earlier one ended with it.
type sessions struct {
	mu     sync.Mutex
	byNode map[string]life.Session // guarded by mu
}

// lives reports whether the session of a node lasts.
func (ss *sessions) lives(node string, now time.Time) bool {
	found, _ := ss.get(node)
	return found.Lives(now)
}

func (ss *sessions) get(node string) (life.Session, bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	found, ok := ss.byNode[node]
	return found, ok
}

// renew is RenewSession.
func (ss *sessions) renew(claimed store.Session) (store.Renewal, error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	session, renewal, err := ss.byNode[claimed.Node].Renewed(claimed, now())
	if err == nil {
		ss.byNode[claimed.Node] = session
	}
	return renewal, err
}

// want leaves a note for the owner of a shard that another node wants it.
func (ss *sessions) want(shard store.Shard, owner, node string) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.byNode[owner] = ss.byNode[owner].Want(shard, node)
}
