package redisstore

import (
	"context"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore/conn"
)

// Seal implements store.Retention.
func (s *retention) Seal(ctx context.Context, shard store.Shard) error {
	return s.own(ctx, "seal", s.lua.seal, shard, s.keys(shard)[:1])
}

// DropShard implements store.Retention.
func (s *retention) DropShard(ctx context.Context, shard store.Shard) error {
	return s.own(ctx, "drop shard", s.lua.drop, shard, s.keys(shard).of(s.lua.drop))
}

// OpenShard implements store.Retention.
func (s *retention) OpenShard(ctx context.Context, shard store.Shard, was store.ShardLife) error {
	return s.own(ctx, "open shard", s.lua.open, shard, s.keys(shard)[:1], lifeText(was))
}

// own runs a script that says whose a shard is, and what becomes of it.
func (s *retention) own(ctx context.Context, what string, sc *conn.Script, shard store.Shard, keys []string, argv ...any) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	argv = append([]any{lifeText(store.ShardLife{Topic: shard.Life})}, argv...)
	if _, err := s.conn.Run(ctx, sc, keys, argv); err != nil {
		return conn.WriteError(what, err)
	}
	return nil
}
