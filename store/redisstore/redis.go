package redisstore

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ddq-io/ddq/store"
)

// Store is a store.Store in Redis. It owns the clients and the checker with their
// goroutines.
type Store struct {
	*client
	renewals *nodes // the same servers, on a connection that nothing else waits for
	lua      *scripts
	log      *slog.Logger
	checker  *checker

	shards keyCache
	topics topicCache
	closed atomic.Bool
	stop   func() error // ends everything, once
}

var _ store.Store = (*Store)(nil)

// Open connects to a Redis and checks that it may be trusted with tasks:
// store.ErrUnsafe says what to change when not, store.ErrUnavailable that it
// could not be reached.
func Open(ctx context.Context, cfg Config, log *slog.Logger) (*Store, error) {
	lua, err := loadScripts()
	if err != nil {
		return nil, err
	}
	t, err := parseURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	w, err := newWait(cfg, t)
	if err != nil {
		return nil, err
	}
	c := &client{nodes: connect(cfg, t.copy()), wait: w}
	s := &Store{client: c, renewals: connectOnce(cfg, t), lua: lua, log: log}
	s.checker = &checker{nodes: c.nodes, wait: w, allowVolatile: cfg.AllowVolatile, log: log}
	if err := s.checker.first(ctx); err != nil {
		return nil, errors.Join(err, s.closeAll())
	}
	s.checker.start(cmp.Or(cfg.CheckEvery, 30*time.Second))
	s.stop = sync.OnceValue(func() error {
		s.closed.Store(true)
		s.checker.stop()
		return s.closeAll()
	})
	return s, nil
}

func (s *Store) closeAll() error { return errors.Join(s.nodes.close(), s.renewals.close()) }

// Close implements store.Store.
func (s *Store) Close() error { return s.stop() }

// enter is the beginning of every call.
func (s *Store) enter(ctx context.Context) error {
	if s.closed.Load() {
		return store.ErrClosed
	}
	return ctx.Err()
}

// keys returns the keys of a shard.
func (s *Store) keys(shard store.Shard) *shardKeys { return s.shards.of(shard) }

// Clock implements store.Store. In a cluster it is that of the node that has the
// topics, so that it does not jump between nodes.
func (s *Store) Clock(ctx context.Context) (time.Time, error) {
	if err := s.enter(ctx); err != nil {
		return time.Time{}, err
	}
	now := redis.NewTimeCmd(ctx, "time")
	if err := s.nodes.send(ctx, topicsKey, now); err != nil {
		return time.Time{}, readError("clock", err)
	}
	return now.Val().UTC(), nil
}

// Info implements store.Store. It tells what the last check of the servers found;
// they are checked on opening and every Config.CheckEvery.
func (s *Store) Info(ctx context.Context) (store.Info, error) {
	if err := s.enter(ctx); err != nil {
		return store.Info{}, err
	}
	info := *s.checker.info.Load()
	info.ManyClocks = s.nodes.cluster != nil
	return info, nil
}
