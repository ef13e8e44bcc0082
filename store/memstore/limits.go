package memstore

import (
	"context"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/limit"
)

// limits is store.Limits.
type limits struct {
	*core
	table *limit.Table
}

// Reserve implements store.Limits.
func (m *limits) Reserve(ctx context.Context, asked []store.Reservation) ([]store.Tokens, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	got, _ := m.table.Reserve(asked, m.now().At)
	return got, nil
}

// Acquire implements store.Limits.
func (m *limits) Acquire(ctx context.Context, asked []store.Acquire) ([]store.Acquired, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	return m.table.Acquire(asked, m.now().At), nil
}

// Move implements store.Limits.
func (m *limits) Move(ctx context.Context, permits []store.Permit) error {
	if err := m.enter(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	m.table.Move(permits)
	return nil
}

// Free implements store.Limits.
func (m *limits) Free(ctx context.Context, permits []store.Permit) ([][]string, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	return m.table.Free(permits, m.now().At), nil
}

// Take implements store.Taker.
func (m *limits) Take(ctx context.Context, q *store.Take) (*store.TakeReply, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	reply, _ := m.table.Take(q, m.now().At)
	return reply, nil
}
