package memstore

import (
	"context"

	"github.com/ddq-io/ddq/store"
)

// DeadWindow implements store.Reader.
func (m reader) DeadWindow(ctx context.Context, s store.Shard, w store.WindowQuery) ([]store.Entry, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	var entries []store.Entry
	for e := range m.shard(s).indexes[store.KindDead].after(w.After) {
		if e.Due > w.To || len(entries) >= w.Limit {
			break
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// TrimDead implements store.Retention.
func (m retention) TrimDead(ctx context.Context, s store.Shard, upTo store.Entry, limit int) (int, error) {
	if err := m.enter(ctx); err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	sh := m.shard(s)
	if limit <= 0 {
		return 0, nil
	}
	page, _ := sh.indexes[store.KindDead].page(store.Entry{}, limit)
	return sh.trim(page, func(e store.Entry) bool { return compareEntries(e, upTo) <= 0 }), nil
}
