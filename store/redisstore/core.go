package redisstore

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore/conn"
)

// core is what the calls of every role need.
type core struct {
	conn *conn.Client
	lua  *scripts
	log  *slog.Logger

	byTopic bool // how limits are named, see nameLimits; not changed once the store is open

	shards keyCache
	closed atomic.Bool
}

// enter is the beginning of every call.
func (s *core) enter(ctx context.Context) error {
	if s.closed.Load() {
		return store.ErrClosed
	}
	return ctx.Err()
}

// keys returns the keys of a shard.
func (s *core) keys(shard store.Shard) *shardKeys { return s.shards.of(shard) }
