package sealstore

import (
	"context"

	"github.com/ddq-io/ddq/store"
)

// Inner is what a Store wraps: all stores of ddq are it.
type Inner interface {
	store.Store
	store.Cells
	store.Registry
	store.Rewriter
}

// Store is another store, in which what users wrote is sealed. What has none of it passes through.
type Store struct {
	Inner
	keys *Keys
}

var (
	_ store.Store    = (*Store)(nil)
	_ store.Cells    = (*Store)(nil)
	_ store.Registry = (*Store)(nil)
	_ store.Early    = (*Store)(nil)
)

// New returns inner with what users wrote sealed by keys, which are those of its registry. Closing it closes
// inner.
func New(inner Inner, keys *Keys) *Store { return &Store{inner, keys} }

// sealer returns what seals for a shard.
func (s *Store) sealer(ctx context.Context, shard store.Shard) (sealer, error) {
	key, err := s.keys.sealing(ctx)
	if err != nil || key == nil {
		return sealer{}, err
	}
	return sealer{key: key, topic: []byte(shard.Topic)}, nil
}

// OnInBox implements store.Early, if the inner store does.
func (s *Store) OnInBox(f func(s store.Shard, in int64)) {
	if early, is := s.Inner.(store.Early); is {
		early.OnInBox(f)
	}
}

// Failed returns why the inner store never will answer again, or nil.
func (s *Store) Failed() error {
	if f, ok := s.Inner.(interface{ Failed() error }); ok {
		return f.Failed()
	}
	return nil
}
