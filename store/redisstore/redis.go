package redisstore

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore/conn"
)

// Store is a store.Store in Redis. It owns the connections, with their goroutines. What
// it does is done by a type for each role of the store's contract, all on one core.
type Store struct {
	*core
	writer
	owner
	sweeper
	reader
	retention
	catalog
	limits
	changeLog
	index
	cells
	registry
	rewriter
}

// The roles of a store, and where their calls are.
type (
	// writer is store.Writer: add, keyed, settle, cancel, change, edit.
	writer struct{ *core }
	// owner is store.Owner but Sweep: hold, settle, own.
	owner struct{ *core }
	// sweeper is the Sweep of store.Owner.
	sweeper struct{ *core }
	// reader is store.Reader: inspect, list, lanes, order, dead, history, histogram.
	reader struct{ *core }
	// retention is store.Retention: change, dead, keyed, log, shardlife.
	retention struct{ *core }
	// limits is store.Limits.
	limits struct{ *core }
	// changeLog is store.Log.
	changeLog struct{ *core }
	// index is store.Index: attributes.
	index struct{ *core }
	// cells is store.Cells: cells, commit, parcel.
	cells struct{ *core }
)

var (
	_ store.Store    = (*Store)(nil)
	_ store.Cells    = (*Store)(nil)
	_ store.Registry = (*Store)(nil)
	_ store.Rewriter = (*Store)(nil)
)

// Open connects to a Redis and checks that it may be trusted with tasks:
// store.ErrUnsafe says what to change when not, store.ErrUnavailable that it
// could not be reached.
func Open(ctx context.Context, cfg Config, log *slog.Logger) (*Store, error) {
	lua, err := loadScripts()
	if err != nil {
		return nil, err
	}
	servers, err := conn.Open(ctx, cfg, typeOf, log)
	if err != nil {
		return nil, err
	}
	c := &core{conn: servers, lua: lua, log: log}
	if err := c.nameLimits(ctx); err != nil {
		return nil, errors.Join(err, servers.Close())
	}
	return newStore(c), nil
}

func newStore(c *core) *Store {
	return &Store{
		core: c, writer: writer{c}, owner: owner{c}, sweeper: sweeper{c}, reader: reader{c}, retention: retention{c},
		catalog: catalog{core: c}, limits: limits{c}, changeLog: changeLog{c}, index: index{c}, cells: cells{c}, registry: registry{c}, rewriter: rewriter{c},
	}
}

// Close implements store.Store.
func (s *Store) Close() error {
	s.closed.Store(true)
	return s.conn.Close()
}

// Clock implements store.Store. In a cluster it is that of the node that has the
// topics, so that it does not jump between nodes.
func (s *Store) Clock(ctx context.Context) (time.Time, error) {
	if err := s.enter(ctx); err != nil {
		return time.Time{}, err
	}
	now := redis.NewTimeCmd(ctx, "time")
	if err := s.conn.Send(ctx, topicsKey, now); err != nil {
		return time.Time{}, conn.ReadError("clock", err)
	}
	return now.Val().UTC(), nil
}

// Exposures tells how others may use the servers, or that ddq may do more there than it needs. It asks them now.
func (s *Store) Exposures(ctx context.Context) ([]Exposure, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	return s.conn.Exposures(ctx)
}

// Info implements store.Store. It tells what the last check of the servers found;
// they are checked on opening and every Config.CheckEvery.
func (s *Store) Info(ctx context.Context) (store.Info, error) {
	if err := s.enter(ctx); err != nil {
		return store.Info{}, err
	}
	return s.conn.Info(), nil
}
