package memstore

import (
	"context"

	"github.com/ddq-io/ddq/store"
)

// Reserve implements store.Limits.
func (m *Store) Reserve(ctx context.Context, asked []store.Reservation) ([]store.Tokens, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	got, _ := m.limits.Reserve(asked, m.now().At)
	return got, nil
}

// Acquire implements store.Limits.
func (m *Store) Acquire(ctx context.Context, asked []store.Acquire) ([]store.Acquired, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	return m.limits.Acquire(asked, m.now().At), nil
}

// Move implements store.Limits.
func (m *Store) Move(ctx context.Context, permits []store.Permit) error {
	if err := m.enter(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	m.limits.Move(permits)
	return nil
}

// Free implements store.Limits.
func (m *Store) Free(ctx context.Context, permits []store.Permit) ([][]string, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	return m.limits.Free(permits, m.now().At), nil
}
