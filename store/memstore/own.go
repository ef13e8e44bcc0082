package memstore

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/store"
)

// session is a node's lease.
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

// ownedUnder reports whether f is the fence of the current claim.
func (sh *shard) ownedUnder(f store.Fence) bool {
	return sh.owner != "" && sh.fence == f
}

// Claim implements store.Owner.
func (m *Store) Claim(ctx context.Context, s store.Shard, claimant store.Session) (store.Stamp, store.Fence, error) {
	if err := m.enter(ctx); err != nil {
		return store.Stamp{}, store.Fence{}, err
	}
	defer m.mu.Unlock()
	sh, now := m.shard(s), m.now()
	if current, known := m.sessions[claimant.Node]; !known || current.start != claimant.Start {
		return store.Stamp{}, store.Fence{}, store.ErrSessionLost
	}
	if sh.owner != "" && sh.owner != claimant.Node && m.sessions[sh.owner].lives(now.At) {
		return store.Stamp{}, store.Fence{}, store.ErrOwned
	}
	sh.owner = claimant.Node
	sh.fence = store.Fence{Epoch: sh.fence.Epoch + 1, Nonce: store.NewToken()}
	return sh.stamp(now), sh.fence, nil
}

// Release implements store.Owner.
func (m *Store) Release(ctx context.Context, s store.Shard, f store.Fence) error {
	if err := m.enter(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	sh := m.shard(s)
	if !sh.ownedUnder(f) {
		return store.ErrFenced
	}
	sh.owner = ""
	return nil
}

// RenewSession implements store.Owner.
func (m *Store) RenewSession(ctx context.Context, s store.Session) (time.Time, error) {
	if err := m.enter(ctx); err != nil {
		return time.Time{}, err
	}
	defer m.mu.Unlock()
	now := m.now()
	if current := m.sessions[s.Node]; !s.Begin && current.start != s.Start && current.lives(now.At) {
		return time.Time{}, store.SessionLost(current.addr)
	}
	m.sessions[s.Node] = session{start: s.Start, expires: now.At.Add(s.TTL), ttl: s.TTL, addr: s.Addr}
	return now.At, nil
}
