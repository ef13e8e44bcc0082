package memstore

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"github.com/ddq-io/ddq/store"
)

// registry is store.Registry.
type registry struct {
	*core
	changes int64                              // so far
	kinds   map[string]map[string]store.Record // by kind and name
}

// PutRecord implements store.Registry.
func (m *registry) PutRecord(ctx context.Context, r store.Record) (int64, error) {
	if err := r.Check(); err != nil {
		return 0, err
	}
	if err := m.enter(ctx); err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	current, exists := m.kinds[r.Kind][r.Name]
	switch {
	case current.Version != r.Version:
		return 0, store.ErrVersion
	case !exists && len(m.kinds[r.Kind]) >= store.MaxRecords:
		return 0, store.ErrRegistryFull
	case m.kinds[r.Kind] == nil:
		m.kinds[r.Kind] = make(map[string]store.Record)
	}
	m.changes++
	r.Version, r.Value = m.changes, bytes.Clone(r.Value)
	m.kinds[r.Kind][r.Name] = r
	return r.Version, nil
}

// DeleteRecord implements store.Registry.
func (m *registry) DeleteRecord(ctx context.Context, kind, name string, version int64) error {
	if err := m.enter(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	if r, exists := m.kinds[kind][name]; !exists || r.Version != version {
		return store.ErrVersion
	}
	m.changes++
	delete(m.kinds[kind], name)
	return nil
}

// Records implements store.Registry.
func (m *registry) Records(ctx context.Context, kind string) ([]store.Record, int64, error) {
	if err := m.enter(ctx); err != nil {
		return nil, 0, err
	}
	defer m.mu.Unlock()
	var all []store.Record
	for _, name := range slices.Sorted(maps.Keys(m.kinds[kind])) {
		r := m.kinds[kind][name]
		r.Value = bytes.Clone(r.Value)
		all = append(all, r)
	}
	return all, m.changes, nil
}

// RegistryChange implements store.Registry.
func (m *registry) RegistryChange(ctx context.Context) (int64, error) {
	if err := m.enter(ctx); err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	return m.changes, nil
}
