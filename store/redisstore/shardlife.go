package redisstore

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore/conn"
)

// droppedLife is how long the owner record of a dropped shard is kept. It refuses what comes late for the topic that was
// deleted, and the catalog is read every second: a node that has not heard of that within a week is none.
const droppedLife = 7 * 24 * time.Hour

// Seal implements store.Retention. It waits for a replica where there is one: a failover that opened the shard again
// would have it take what the next generation of shards gets, too.
func (s *retention) Seal(ctx context.Context, shard store.Shard) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	if _, err := s.conn.RunReplicated(ctx, s.lua.seal, s.keys(shard)[:1], []any{lifeText(store.ShardLife{Topic: shard.Life})}); err != nil {
		return conn.WriteError("seal", err)
	}
	return nil
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
