package memstore

import (
	"context"
	"maps"
	"slices"

	"github.com/ddq-io/ddq/store"
)

// catalog is store.Catalog.
type catalog struct {
	*core
	topics map[string]store.Topic // name -> configuration
}

// PutTopic implements store.Catalog.
func (m *catalog) PutTopic(ctx context.Context, t store.Topic) (store.Topic, error) {
	if err := m.enter(ctx); err != nil {
		return store.Topic{}, err
	}
	defer m.mu.Unlock()
	current, exists := m.topics[t.Name]
	switch {
	case exists && t.Version == 0:
		return store.Topic{}, store.ErrTopicExists
	case current.Version != t.Version:
		return store.Topic{}, store.ErrVersion
	}
	t.Version++
	m.topics[t.Name] = t
	return t, nil
}

// GetTopic implements store.Catalog.
func (m *catalog) GetTopic(ctx context.Context, name string) (store.Topic, error) {
	if err := m.enter(ctx); err != nil {
		return store.Topic{}, err
	}
	defer m.mu.Unlock()
	t, exists := m.topics[name]
	if !exists {
		return store.Topic{}, store.ErrTopicNotFound
	}
	return t, nil
}

// ListTopics implements store.Catalog.
func (m *catalog) ListTopics(ctx context.Context) ([]store.Topic, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	topics := make([]store.Topic, 0, len(m.topics))
	for _, name := range slices.Sorted(maps.Keys(m.topics)) {
		topics = append(topics, m.topics[name])
	}
	return topics, nil
}

// DeleteTopic implements store.Catalog.
func (m *catalog) DeleteTopic(ctx context.Context, name string, life uint64) error {
	if err := m.enter(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	if t, exists := m.topics[name]; !exists || t.Life != life {
		return store.ErrTopicNotFound
	}
	delete(m.topics, name)
	return nil
}
