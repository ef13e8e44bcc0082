package memstore

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
	"github.com/ddq-io/ddq/store/limit"
)

// Store is a store.Store in memory. It owns no goroutine. What it does is done by a type
// for each role of the store's contract, all on one core.
type Store struct {
	*core
	writer
	owner
	reader
	retention
	catalog
	limits
	changeLog
	attributeIndex
	cellTable
	registry
	rewriter
}

var (
	_ store.Store    = (*Store)(nil)
	_ store.Cells    = (*Store)(nil)
	_ store.Registry = (*Store)(nil)
	_ store.Rewriter = (*Store)(nil)
)

// New returns an empty store.
func New() *Store {
	c := &core{shards: make(map[store.Shard]*shard), server: 1}
	return &Store{
		core: c, writer: writer{c}, reader: reader{c}, retention: retention{c},
		owner:     owner{c, make(map[string]life.Session)},
		catalog:   catalog{c, make(map[string]store.Topic)},
		limits:    limits{c, limit.NewTable()},
		changeLog: changeLog{c}, attributeIndex: attributeIndex{c}, cellTable: cellTable{c},
		registry: registry{core: c, kinds: make(map[string]map[string]store.Record)}, rewriter: rewriter{c},
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
		Servers:    m.server,
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
