package faults

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/bench/faults/stand"
)

// lagFaults are those of replicas that do not keep up.
func lagFaults() []Fault {
	return []Fault{{
		Name: "failover-lag", What: "no replica hears of the primary any more, then it dies, and one of them takes over",
		Stores: []string{stand.RedisSentinel}, strike: failOverBehind, once: true, Tokens: true,
		Cost: "as for failover; nothing succeeds from when the replicas fall behind",
	}}
}

func failOverBehind(ctx context.Context, r *round) error {
	redis := r.Store.(*stand.Sentinel)
	return r.broken(ctx, "kill -9 of a primary whose replicas lag", func() error {
		var pauseErr error
		err := redis.Try(func() {
			primary := redis.Set.Primary(redis)
			redis.Patience(stand.Briskly)
			redis.Set.Detach(redis)
			pauseErr = r.pause(ctx, 300*time.Millisecond, time.Second)
			primary.Kill()
			redis.Set.Attach(redis)
			redis.Set.AwaitTakeover(redis)
			redis.Patience(stand.Calmly)
			primary.Restart()
			redis.AwaitFollows(primary)
		})
		if err != nil {
			return err
		}
		if pauseErr != nil {
			return pauseErr
		}
		return r.AwaitWhole(ctx)
	})
}
