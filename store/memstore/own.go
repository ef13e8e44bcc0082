package memstore

import (
	"context"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
)

// owner is store.Owner.
type owner struct {
	*core
	sessions map[string]life.Session // node -> its lease
}

// Claim implements store.Owner.
func (m *owner) Claim(ctx context.Context, s store.Shard, claimant store.Session) (store.Stamp, store.Fence, error) {
	if err := m.enter(ctx); err != nil {
		return store.Stamp{}, store.Fence{}, err
	}
	defer m.mu.Unlock()
	sh, now := m.shard(s), m.now()
	if current, known := m.sessions[claimant.Node]; !known || current.Start != claimant.Start {
		return store.Stamp{}, store.Fence{}, store.ErrSessionLost
	}
	if sh.owner != "" && sh.owner != claimant.Node && m.sessions[sh.owner].Lives(now.At) {
		if claimant.Wants {
			m.sessions[sh.owner] = m.sessions[sh.owner].Want(s, claimant.Node)
		}
		return store.Stamp{}, store.Fence{}, &store.OwnedError{Node: sh.owner}
	}
	sh.owner = claimant.Node
	sh.fence = store.Fence{Epoch: sh.fence.Epoch + 1, Nonce: store.NewToken()}
	stamp := sh.stamp(now)
	stamp.Server = m.server
	return stamp, sh.fence, nil
}

// Release implements store.Owner.
func (m *owner) Release(ctx context.Context, s store.Shard, f store.Fence) error {
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
func (m *owner) RenewSession(ctx context.Context, s store.Session) (store.Renewal, error) {
	if err := m.enter(ctx); err != nil {
		return store.Renewal{}, err
	}
	defer m.mu.Unlock()
	session, renewal, err := m.sessions[s.Node].Renewed(s, m.now().At)
	if err == nil {
		m.sessions[s.Node] = session
	}
	return renewal, err
}
