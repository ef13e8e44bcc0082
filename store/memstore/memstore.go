package memstore

import (
	"context"
	"sync"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
	"github.com/ddq-io/ddq/store/limit"
)

// Store is a store.Store in memory. It owns no goroutine.
type Store struct {
	mu       sync.Mutex
	closed   bool                    // guarded by mu, as is the rest
	ahead    time.Duration           // of the machine's clock
	shards   map[store.Shard]*shard  // made on first use
	sessions map[string]life.Session // node -> its lease
	topics   map[string]store.Topic  // name -> configuration
	limits   *limit.Table
}

var (
	_ store.Store = (*Store)(nil)
	_ store.Cells = (*Store)(nil)
)

// New returns an empty store.
func New() *Store {
	return &Store{
		shards:   make(map[store.Shard]*shard),
		sessions: make(map[string]life.Session),
		topics:   make(map[string]store.Topic),
		limits:   limit.NewTable(),
	}
}

// Info says that nothing here is durable.
func (m *Store) Info(ctx context.Context) (store.Info, error) {
	if err := m.enter(ctx); err != nil {
		return store.Info{}, err
	}
	defer m.mu.Unlock()
	return store.Info{
		Name:       "memory",
		Durability: "none",
		Warnings:   []string{"tasks are kept in memory only and are lost when the process ends"},
	}, nil
}

// SetClock makes the store's clock differ from that of this machine, or of the
// synctest bubble, as those of two machines do. By default it does not.
func (m *Store) SetClock(ahead time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ahead = ahead
}

// Clock returns the store's time, see SetClock.
func (m *Store) Clock(ctx context.Context) (time.Time, error) {
	if err := m.enter(ctx); err != nil {
		return time.Time{}, err
	}
	defer m.mu.Unlock()
	return m.now().At, nil
}

// Close makes every later call fail with store.ErrClosed.
func (m *Store) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}

// enter locks the store, unless it is closed or ctx has ended.
func (m *Store) enter(ctx context.Context) error {
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
func (m *Store) shard(s store.Shard) *shard {
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
func batch[Item, Result any](ctx context.Context, m *Store, s store.Shard, a access, items []Item,
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

// clock is the moment of one call.
type clock = life.Moment

// now reads the clock, to the microsecond as other stores do. The caller holds mu.
func (m *Store) now() clock {
	return clock{At: time.Now().Add(m.ahead).UTC().Truncate(time.Microsecond)}
}
