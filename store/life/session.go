package life

import (
	"time"

	"github.com/ddq-io/ddq/store"
)

// Session is the lease of a node, as a store has it.
type Session struct {
	Start   store.Token
	Expires time.Time
	TTL     time.Duration
	Addr    string
}

// Lives reports whether the session lasts. One that ends far later than it can is of a
// clock that was ahead, and is over.
func (s Session) Lives(now time.Time) bool {
	left := s.Expires.Sub(now)
	return left > 0 && left <= 2*s.TTL
}

// Renewed is the session after its node renews it: an error while another process of the
// node's name has it, unless the renewal begins a session.
func (s Session) Renewed(by store.Session, now time.Time) (Session, error) {
	if !by.Begin && s.Start != by.Start && s.Lives(now) {
		return s, store.SessionLost(s.Addr)
	}
	return Session{Start: by.Start, Expires: now.Add(by.TTL), TTL: by.TTL, Addr: by.Addr}, nil
}
