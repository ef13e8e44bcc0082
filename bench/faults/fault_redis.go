package faults

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/bench/faults/stand"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// redisFaults are those of a single redis-server.
func redisFaults() []Fault {
	return []Fault{
		{
			Name: "redis-kill", What: "kill -9 of Redis, and its restart", Stores: onRedis(), strike: killRedis, Mounts: true,
			tune: func(s *setting) { s.system.Disk = stand.PlainDisk }, // which keeps up
			Cost: "no service until it is back and has read its log; what was asked meanwhile is refused, or may have been done",
		},
		{
			Name: "redis-pause", What: "SIGSTOP of Redis, also for longer than the nodes' lease", Stores: onRedis(), strike: pauseRedis,
			Cost: "no service meanwhile; calls wait, or time out and may have been done",
		},
	}
}

func killRedis(ctx context.Context, r *round) error {
	redis := r.Store.(*stand.Redis)
	return r.broken(ctx, "kill -9 redis", func() error {
		// A sync that is under way makes Redis lose what it answered: see AwaitWritten.
		if err := redistest.AwaitWritten(ctx, redis.Addr); err != nil {
			return err
		}
		if err := redis.Process.Kill(); err != nil {
			return err
		}
		if err := r.pause(ctx, 0, 2*time.Second); err != nil {
			return err
		}
		if err := redis.Process.Revive(); err != nil {
			return err
		}
		return r.AwaitWhole(ctx)
	})
}

func pauseRedis(ctx context.Context, r *round) error {
	redis := r.Store.(*stand.Redis)
	return r.broken(ctx, "pause redis", func() error {
		if err := redis.Process.Pause(); err != nil {
			return err
		}
		if err := r.pause(ctx, 300*time.Millisecond, 3500*time.Millisecond); err != nil {
			return err
		}
		if err := redis.Process.Resume(); err != nil {
			return err
		}
		return r.AwaitWhole(ctx)
	})
}
