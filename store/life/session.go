package life

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ddq-io/ddq/store"
)

// Session is the lease of a node, as a store has it.
type Session struct {
	Start   store.Token
	Expires time.Time
	TTL     time.Duration
	Addr    string

	wanted map[store.Shard]string // by which node; never changed
}

// Lives reports whether the session lasts. One that ends far later than it can is of a
// clock that was ahead, and is over.
func (s Session) Lives(now time.Time) bool {
	left := s.Expires.Sub(now)
	return left > 0 && left <= 2*s.TTL
}

// Renewed is the session after its node renews it, and what the node learns: an error while
// another process of the node's name has it, unless the renewal begins a session.
func (s Session) Renewed(by store.Session, now time.Time) (Session, store.Renewal, error) {
	if !by.Begin && s.Start != by.Start && s.Lives(now) {
		return s, store.Renewal{}, &store.SessionLostError{Addr: s.Addr}
	}
	r := store.Renewal{Now: now, Forgot: s.TTL == 0}
	for shard, node := range s.wanted {
		r.Wanted = append(r.Wanted, store.Wanted{Shard: shard, By: node})
	}
	slices.SortFunc(r.Wanted, func(a, b store.Wanted) int { // the same order each time, for simulations
		return cmp.Or(strings.Compare(a.Shard.Topic, b.Shard.Topic), cmp.Compare(a.Shard.N, b.Shard.N))
	})
	return Session{Start: by.Start, Expires: now.Add(by.TTL), TTL: by.TTL, Addr: by.Addr}, r, nil
}

// Want is the session with a note that a node wants a shard of its node.
func (s Session) Want(shard store.Shard, node string) Session {
	shard = shard.Name()
	if _, again := s.wanted[shard]; !again && len(s.wanted) >= store.MaxWanted {
		return s
	}
	wanted := maps.Clone(s.wanted)
	if wanted == nil {
		wanted = make(map[store.Shard]string)
	}
	wanted[shard] = node
	s.wanted = wanted
	return s
}
