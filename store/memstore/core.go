package memstore

import (
	"context"
	"sync"
	"time"

	"github.com/ddq-io/ddq/store"
)

// core is what the calls of every role need.
type core struct {
	mu     sync.Mutex // guards everything, also what roles have of their own
	closed bool
	ahead  time.Duration          // of the machine's clock
	server uint64                 // see Restore
	shards map[store.Shard]*shard // made on first use
}

// Roles that have nothing of their own beside the core.
type (
	// writer is store.Writer.
	writer struct{ *core }
	// reader is store.Reader.
	reader struct{ *core }
	// retention is store.Retention.
	retention struct{ *core }
	// changeLog is store.Log.
	changeLog struct{ *core }
	// attributeIndex is store.Index.
	attributeIndex struct{ *core }
	// cellTable is store.Cells.
	cellTable struct{ *core }
)

// enter locks the store, unless it is closed or ctx has ended.
func (m *core) enter(ctx context.Context) error {
	m.mu.Lock()
	err := ctx.Err()
	if m.closed {
		err = store.ErrClosed
	}
	if err != nil {
		m.mu.Unlock()
	}
	return err
}

// shard returns the shard s, making it when it is new.
func (m *core) shard(s store.Shard) *shard {
	name := s.Name()
	sh := m.shards[name]
	if sh == nil {
		sh = newShard()
		m.shards[name] = sh
	}
	return sh
}

// access says what a call needs of its shard.
type access struct {
	adds  bool         // tasks, so the shard must be the topic's
	open  bool         // the shard must not be sealed
	fence *store.Fence // of the current claim
}

// batch runs do for every item under the lock, and raises the shard's seq by
// one when that made any task pending.
func batch[Item, Result any](ctx context.Context, m *core, s store.Shard, a access, items []Item,
	do func(*shard, clock, Item) Result,
) (store.Stamp, []Result, error) {
	if err := m.enter(ctx); err != nil {
		return store.Stamp{}, nil, err
	}
	defer m.mu.Unlock()
	sh, now := m.shard(s), m.now()
	switch {
	case a.fence != nil && !sh.ownedUnder(*a.fence):
		return store.Stamp{}, nil, store.ErrFenced
	case a.open && sh.sealed, a.adds && !sh.adding(s.Life):
		return store.Stamp{}, nil, store.ErrSealed
	}
	results := make([]Result, len(items))
	for i, item := range items {
		results[i] = do(sh, now, item)
	}
	return sh.stamp(now), results, nil
}

// now reads the clock, to the microsecond as other stores do. The caller holds mu.
func (m *core) now() clock {
	return clock{At: time.Now().Add(m.ahead).UTC().Truncate(time.Microsecond)}
}
