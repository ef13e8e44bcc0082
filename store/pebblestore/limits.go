package pebblestore

import (
	"context"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/limit"
)

// Reserve implements store.Limits.
func (s *Store) Reserve(ctx context.Context, asked []store.Reservation) (got []store.Tokens, err error) {
	err = s.withLimits(ctx, func(t *limit.Table) error {
		var changed []limit.Change
		got, changed = t.Reserve(asked, now())
		return s.limits.write(s.dir, changed)
	})
	return got, err
}

// Acquire implements store.Limits.
func (s *Store) Acquire(ctx context.Context, asked []store.Acquire) (got []store.Acquired, err error) {
	err = s.withLimits(ctx, func(t *limit.Table) error {
		got = t.Acquire(asked, now())
		return nil
	})
	return got, err
}

// Move implements store.Limits.
func (s *Store) Move(ctx context.Context, permits []store.Permit) error {
	return s.withLimits(ctx, func(t *limit.Table) error {
		t.Move(permits)
		return nil
	})
}

// Free implements store.Limits.
func (s *Store) Free(ctx context.Context, permits []store.Permit) (waiting [][]string, err error) {
	err = s.withLimits(ctx, func(t *limit.Table) error {
		waiting = t.Free(permits, now())
		return nil
	})
	return waiting, err
}

// withLimits calls do with the table under its lock.
func (s *Store) withLimits(ctx context.Context, do func(*limit.Table) error) error {
	if err := s.dir.Enter(ctx); err != nil {
		return err
	}
	defer s.dir.Leave()
	s.limits.Lock()
	defer s.limits.Unlock()
	return do(s.limits.table)
}
