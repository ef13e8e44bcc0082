package intake

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/ddq-io/ddq/store"
)

// Tenant is what a node remembers of what a namespace with quotas may have more. The zero value is ready to use.
type Tenant struct {
	Backlog   Allowance
	Tokens    Tokens
	Bytes     Bytes
	Schedules Allowance

	TopicsFull atomic.Int64 // it has its topics, until that moment in Unix nanoseconds, as far as is known
}

const (
	// ahead is for how long tokens of a rate are taken ahead of the tasks that need them. Those that are not
	// used by then are lost: the rate of the namespace is never exceeded, and a node that rests keeps none.
	ahead = 50 * time.Millisecond
	// mostAhead bounds the tokens of one reservation.
	mostAhead = store.MaxReserve
)

// Tokens are those of a rate over all nodes that this node has taken from the store. The zero value has none.
type Tokens struct {
	mu    sync.Mutex
	left  int       // that may be used still; guarded by mu, as all
	until time.Time // they are lost then
	again time.Time // the store has none before that
}

// Take uses one token. Where there is none here, reserve is how many to take from the store; where the store has
// none either, reserve is 0 and wait says when it has.
func (t *Tokens) Take(now time.Time, r store.Rate, wanted int) (taken bool, reserve int, wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.left > 0 && now.Before(t.until):
		t.left--
		return true, 0, 0
	case now.Before(t.again):
		return false, 0, t.again.Sub(now)
	}
	soon := int(ahead / max(1, r.Spacing()))
	return false, max(1, min(max(wanted, soon), r.Most(), mostAhead)), 0
}

// Back gives one back that was taken and not used.
func (t *Tokens) Back() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left++
}

// Add adds what a reservation got.
func (t *Tokens) Add(now time.Time, got store.Tokens) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if got.N == 0 {
		t.again = now.Add(got.First.Sub(got.Now))
		return
	}
	if !now.Before(t.until) {
		t.left = 0
	}
	t.left, t.until = t.left+got.N, now.Add(ahead)
}
