package redisstore

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore/conn"
)

// Store is a store.Store in Redis. It owns the connections, with their goroutines.
type Store struct {
	conn *conn.Client
	lua  *scripts
	log  *slog.Logger

	shards keyCache
	topics topicCache
	closed atomic.Bool
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
	servers, err := conn.Open(ctx, cfg, typeOf, log)
	if err != nil {
		return nil, err
	}
	return &Store{conn: servers, lua: lua, log: log}, nil
}

// Close implements store.Store.
func (s *Store) Close() error {
	s.closed.Store(true)
	return s.conn.Close()
}

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
	if err := s.conn.Send(ctx, topicsKey, now); err != nil {
		return time.Time{}, conn.ReadError("clock", err)
	}
	return now.Val().UTC(), nil
}

// Info implements store.Store. It tells what the last check of the servers found;
// they are checked on opening and every Config.CheckEvery.
func (s *Store) Info(ctx context.Context) (store.Info, error) {
	if err := s.enter(ctx); err != nil {
		return store.Info{}, err
	}
	return s.conn.Info(), nil
}
