package pebblestore

import (
	"context"

	"github.com/ddq-io/ddq/store"
)

// shardOwner is the store as the owner of a shard uses it.
type shardOwner struct {
	*base
	sessions sessions
}

// Claim makes the node of the session the shard's owner.
func (s *shardOwner) Claim(ctx context.Context, name store.Shard, claimant store.Session) (store.Stamp, store.Fence, error) {
	var fence store.Fence
	stamp, err := s.change(ctx, name, access{owned: true}, func(t *transaction) error {
		if own, ok := s.sessions.get(claimant.Node); !ok || own.Start != claimant.Start {
			return store.ErrSessionLost
		}
		if o := t.sh.owner; o.node != "" && o.node != claimant.Node && s.sessions.lives(o.node, t.now) {
			if claimant.Wants {
				s.sessions.want(name, o.node, claimant.Node)
			}
			return &store.OwnedError{Node: o.node}
		}
		fence = store.Fence{Epoch: t.sh.owner.fence.Epoch + 1, Nonce: store.NewToken()}
		return t.putOwner(owner{claimant.Node, fence})
	})
	if err != nil {
		return store.Stamp{}, store.Fence{}, err
	}
	return stamp, fence, nil
}

func (t *transaction) putOwner(o owner) error {
	t.key = appendPrefix(t.key[:0], t.sh.number, tableOwner)
	t.value = o.append(t.value[:0])
	t.next.owner = &o
	return t.set(t.key, t.value)
}

// Release ends a claim.
func (s *shardOwner) Release(ctx context.Context, name store.Shard, f store.Fence) error {
	_, err := s.change(ctx, name, access{fence: &f}, func(t *transaction) error {
		return t.putOwner(owner{fence: f}) // the epoch goes on from here
	})
	return err
}

// RenewSession makes the node's session last for TTL from now.
func (s *shardOwner) RenewSession(ctx context.Context, claimed store.Session) (store.Renewal, error) {
	if err := s.dir.Enter(ctx); err != nil {
		return store.Renewal{}, err
	}
	defer s.dir.Leave()
	return s.sessions.renew(claimed)
}
