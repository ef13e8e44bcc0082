package pebblestore

import (
	"context"
	"slices"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/limit"
)

// Reserve implements store.Limits. Tokens that are reserved as a whole are for a caller: no hold
// follows whose sync would sync them, so they are synced before they are given.
func (l *limits) Reserve(ctx context.Context, asked []store.Reservation) (got []store.Tokens, err error) {
	err = l.withLimits(ctx, func(t *limit.Table) error {
		var changed []limit.Change
		got, changed = t.Reserve(asked, now())
		return l.write(l.dir, changed)
	})
	if err == nil && slices.ContainsFunc(asked, func(q store.Reservation) bool { return q.Whole && q.N > 0 }) {
		err = l.sync(ctx)
	}
	return got, err
}

// sync returns once every change of a rate that could be read is synced.
func (l *limits) sync(ctx context.Context) error {
	if err := l.dir.Enter(ctx); err != nil {
		return err
	}
	defer l.dir.Leave()
	return l.dir.Sync()
}

// Acquire implements store.Limits.
func (l *limits) Acquire(ctx context.Context, asked []store.Acquire) (got []store.Acquired, err error) {
	if err := l.countNamespaces(ctx, asked); err != nil {
		return nil, err
	}
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

// Take implements store.Taker. Its tokens are synced by the holds that follow.
func (l *limits) Take(ctx context.Context, q *store.Take) (reply *store.TakeReply, err error) {
	if q.Limits.Namespace > 0 {
		if err := l.countNamespace(ctx, store.CapKey(q.Topic, store.NamespaceCap)); err != nil {
			return nil, err
		}
	}
	err = l.withLimits(ctx, func(t *limit.Table) error {
		var changed []limit.Change
		reply, changed = t.Take(q, now())
		return l.write(l.dir, changed)
	})
	if err != nil {
		return nil, err
	}
	return reply, nil
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
