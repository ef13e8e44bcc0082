package memstore

import (
	"context"

	"github.com/ddq-io/ddq/store"
)

// Histogram implements store.Reader.
func (m reader) Histogram(ctx context.Context, s store.Shard, bounds []store.Millis) (store.Stamp, []int64, error) {
	if err := m.enter(ctx); err != nil {
		return store.Stamp{}, nil, err
	}
	defer m.mu.Unlock()
	sh, counts, bucket := m.shard(s), make([]int64, len(bounds)+1), 0
	for e := range sh.indexes[store.KindPending].after(store.Entry{}) {
		for bucket < len(bounds) && e.Due >= bounds[bucket] {
			bucket++
		}
		counts[bucket]++
	}
	return sh.stamp(m.now()), counts, nil
}
