package pebblestore

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/ddq-io/ddq/store"
)

// owner says who may hold tasks of a shard. It is stored as it is here.
type owner struct {
	node  string // empty: nobody
	fence store.Fence
}

func (o owner) is(f store.Fence) bool { return o.node != "" && o.fence == f }

func (o owner) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(o.fence.Epoch))
	b = append(b, o.fence.Nonce[:]...)
	return append(b, o.node...)
}

func decodeOwner(b []byte) (o owner, err error) {
	in := input{b: b}
	o.fence.Epoch = int64(in.uint64())
	copy(o.fence.Nonce[:], in.bytes(uint64(len(o.fence.Nonce))))
	o.node = string(in.b)
	if in.short {
		return owner{}, errors.New("decode owner of a shard: malformed")
	}
	return o, nil
}

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

func (ss *sessions) get(node string) (session, bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	found, ok := ss.byNode[node]
	return found, ok
}

// Claim makes the node of the session the shard's owner.
func (s *Store) Claim(ctx context.Context, name store.Shard, claimant store.Session) (store.Stamp, store.Fence, error) {
	var fence store.Fence
	stamp, err := s.change(ctx, name, access{owned: true}, func(t *turn) error {
		if own, ok := s.sessions.get(claimant.Node); !ok || own.start != claimant.Start {
			return store.ErrSessionLost
		}
		if t.ownedByOther(claimant.Node) {
			return store.ErrOwned
		}
		fence = store.Fence{Epoch: t.sh.owner.fence.Epoch + 1, Nonce: store.NewToken()}
		return t.putOwner(owner{claimant.Node, fence})
	})
	if err != nil {
		return store.Stamp{}, store.Fence{}, err
	}
	return stamp, fence, nil
}

// ownedByOther reports whether another node owns the shard by a lease that lives.
func (t *turn) ownedByOther(node string) bool {
	if t.sh.owner.node == "" || t.sh.owner.node == node {
		return false
	}
	lease, _ := t.s.sessions.get(t.sh.owner.node)
	return lease.lives(t.now)
}

func (t *turn) putOwner(o owner) error {
	t.key = appendPrefix(t.key[:0], t.sh.number, tableOwner)
	t.value = o.append(t.value[:0])
	t.owner = &o
	return t.set(t.key, t.value)
}

// Release ends a claim.
func (s *Store) Release(ctx context.Context, name store.Shard, f store.Fence) error {
	_, err := s.change(ctx, name, access{fence: &f}, func(t *turn) error {
		return t.putOwner(owner{fence: f}) // the epoch goes on from here
	})
	return err
}

// RenewSession makes the node's session last for TTL from now.
func (s *Store) RenewSession(ctx context.Context, claimed store.Session) (time.Time, error) {
	if err := s.enter(ctx); err != nil {
		return time.Time{}, err
	}
	defer s.leave()
	s.sessions.mu.Lock()
	defer s.sessions.mu.Unlock()
	moment := now()
	if current := s.sessions.byNode[claimed.Node]; !claimed.Begin && current.start != claimed.Start && current.lives(moment) {
		return time.Time{}, store.SessionLost(current.addr)
	}
	s.sessions.byNode[claimed.Node] = session{start: claimed.Start, expires: moment.Add(claimed.TTL), ttl: claimed.TTL, addr: claimed.Addr}
	return moment, nil
}
