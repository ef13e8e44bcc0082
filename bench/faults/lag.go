package faults

import (
	"context"
	"time"
)

// lagFaults are those of replicas that do not keep up.
func lagFaults() []Fault {
	return []Fault{{
		Name: "failover-lag", What: "no replica hears of the primary any more, then it dies, and one of them takes over",
		Stores: []string{redisSentinel}, strike: failOverBehind, once: true, Tokens: true,
		Cost: "as for failover; nothing succeeds from when the replicas fall behind",
	}}
}

func failOverBehind(ctx context.Context, r *round) error {
	redis := r.store.(*sentinelStore)
	return r.broken(ctx, "kill -9 of a primary whose replicas lag", func() error {
		var pauseErr error
		err := redis.try(func() {
			primary := redis.set.Primary(redis)
			redis.patience(briskly)
			redis.set.Detach(redis)
			pauseErr = r.pause(ctx, 300*time.Millisecond, time.Second)
			primary.Kill()
			redis.set.Attach(redis)
			redis.set.AwaitTakeover(redis)
			redis.patience(calmly)
			primary.Restart()
			redis.awaitFollows(primary)
		})
		if err != nil {
			return err
		}
		if pauseErr != nil {
			return pauseErr
		}
		return r.awaitWhole(ctx)
	})
}
