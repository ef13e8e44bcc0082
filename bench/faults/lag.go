package faults

import (
	"context"
	"time"
)

// lagFaults are those of replicas that do not keep up. Sentinels do not always agree
// on one of such replicas within half a minute, so a round may come to no verdict.
func lagFaults() []Fault {
	return []Fault{{
		Name: "failover-lag", What: "no replica hears of the primary any more, then it dies, and one of them takes over",
		Stores: []string{redisSentinel}, strike: failOverBehind, once: true, Asked: true,
		Cost: "as for failover; nothing succeeds from when the replicas fall behind",
	}}
}

func failOverBehind(ctx context.Context, r *round) error {
	redis := r.store.(*sentinelStore)
	return r.broken(ctx, "kill -9 of a primary whose replicas lag", func() error {
		var pauseErr error
		err := redis.try(func() {
			primary := redis.set.Primary(redis)
			redis.set.Detach(redis)
			pauseErr = r.pause(ctx, 300*time.Millisecond, time.Second)
			primary.Kill()
			redis.set.Attach(redis)
			redis.set.AwaitTakeover(redis)
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
