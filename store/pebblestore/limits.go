package pebblestore

import (
	"context"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/limit"
)

// Reserve implements store.Limits.
func (l *limits) Reserve(ctx context.Context, asked []store.Reservation) (got []store.Tokens, err error) {
	err = l.withLimits(ctx, func(t *limit.Table) error {
		var changed []limit.Change
		got, changed = t.Reserve(asked, now())
		return l.write(l.dir, changed)
	})
	return got, err
}

// Acquire implements store.Limits.
func (l *limits) Acquire(ctx context.Context, asked []store.Acquire) (got []store.Acquired, err error) {
	err = l.withLimits(ctx, func(t *limit.Table) error {
		got = t.Acquire(asked, now())
		return nil
	})
	return got, err
}

// Move implements store.Limits.
func (l *limits) Move(ctx context.Context, permits []store.Permit) error {
	return l.withLimits(ctx, func(t *limit.Table) error {
		t.Move(permits)
		return nil
	})
}

// Free implements store.Limits.
func (l *limits) Free(ctx context.Context, permits []store.Permit) (waiting [][]string, err error) {
	err = l.withLimits(ctx, func(t *limit.Table) error {
		waiting = t.Free(permits, now())
		return nil
	})
	return waiting, err
}

// withLimits calls do with the table under its lock.
func (l *limits) withLimits(ctx context.Context, do func(*limit.Table) error) error {
	if err := l.dir.Enter(ctx); err != nil {
		return err
	}
	defer l.dir.Leave()
	l.mu.Lock()
	defer l.mu.Unlock()
	return do(l.table)
}
