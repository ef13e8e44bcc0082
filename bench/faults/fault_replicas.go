package faults

import (
	"context"
	"fmt"
	"time"

	"github.com/ddq-io/ddq/bench/faults/plan"
	"github.com/ddq-io/ddq/bench/faults/stand"
	"github.com/ddq-io/ddq/bench/ledger/checker"
)

// replicaFaults are those of Redis with replicas.
func replicaFaults() []Fault {
	return []Fault{
		{
			Name: "failover", What: "kill -9 of a primary, another takes over, and the old one comes back", Stores: replicated(), strike: failOver, Tokens: true,
			Cost: "no service for what lies there until another is elected, some seconds here; nothing succeeds while the new one has no replica",
		},
		{
			Name: "failover-fast", What: "the same without wait_replicas", Stores: replicatedFast(), strike: failOver, Tokens: true,
			Cost:  "the same; and what was answered in the second before, or while it lasted, may be undone: tasks lost, settled ones back",
			Allow: []checker.Allowance{{Fault: "failover-fast", Before: time.Second}},
		},
		{
			Name: "primary-pause", What: "SIGSTOP of a primary, for long enough that another takes over, then SIGCONT", Stores: replicated(), strike: pausePrimary, Tokens: true,
			Cost: "no service for what lies there until it wakes or another is elected; what it still accepts ends unknown",
		},
		{
			Name: "handover", What: "sentinels make another server the primary (SENTINEL FAILOVER), and the old one lives",
			Stores: []string{stand.RedisSentinel}, strike: handOver, once: true, Tokens: true,
			Cost:  "what was answered meanwhile may be undone, whatever wait_replicas says: the old primary goes on, with the replicas that have not been told",
			Allow: []checker.Allowance{{Fault: "handover", Before: time.Second}},
		},
		{
			Name: "handover-all", What: "the same with wait_replicas for all replicas", Stores: []string{stand.RedisSentinelAll}, strike: handOver, once: true, Tokens: true,
			Cost: "no service until the old primary is a replica",
		},
		{
			Name: "slots", What: "the slots of all shards are moved to a new master and back, key by key", Stores: []string{stand.RedisCluster}, strike: moveSlots,
			Cost: "a shard waits while its slot is moved",
		},
	}
}

func failOver(ctx context.Context, r *round) error {
	redis := r.Store.(stand.Replicated)
	return r.broken(ctx, "kill -9 of a primary", func() error {
		err := redis.Try(func() {
			server, awaitTakeover := redis.Primary(r.anyShard())
			redis.Patience(stand.Briskly)
			server.Kill()
			awaitTakeover()
			server.Restart()
			redis.Patience(stand.Calmly)
			redis.AwaitFollows(server)
		})
		if err != nil {
			return err
		}
		return r.AwaitWhole(ctx)
	})
}

// pausePrimary wakes it up once another has taken its place, or before anybody noticed.
func pausePrimary(ctx context.Context, r *round) error {
	redis := r.Store.(stand.Replicated)
	brief := r.strikes%2 == 1
	return r.broken(ctx, "pause a primary", func() error {
		err := redis.Try(func() {
			server, awaitTakeover := redis.Primary(r.anyShard())
			if !brief {
				redis.Patience(stand.Briskly)
			}
			server.Pause()
			defer server.Resume()
			if brief {
				_ = r.pause(ctx, 200*time.Millisecond, 2*time.Second)
				return
			}
			awaitTakeover()
			server.Resume()
			redis.Patience(stand.Calmly)
			redis.AwaitFollows(server)
		})
		if err != nil {
			return err
		}
		return r.AwaitWhole(ctx)
	})
}

func handOver(ctx context.Context, r *round) error {
	redis := r.Store.(*stand.Sentinel)
	return r.broken(ctx, "SENTINEL FAILOVER", func() error {
		err := redis.Try(func() {
			before := redis.Set.Primary(redis)
			redis.Set.HandOver(redis)
			for end := time.Now().Add(stand.UpWithin); redis.Set.Primary(redis) == before; {
				if time.Now().After(end) {
					redis.Fatal("the sentinels did not make another server the primary")
				}
				_ = r.sleep(ctx, 20*time.Millisecond)
			}
			redis.Set.AwaitTakeover(redis)
		})
		if err != nil {
			return err
		}
		return r.AwaitWhole(ctx)
	})
}

func moveSlots(ctx context.Context, r *round) error {
	redis := r.Store.(*stand.Cluster)
	return r.broken(ctx, "move the slots of all shards", func() error {
		return redis.Try(func() {
			masters := redis.Set.Masters(redis)
			for n := range r.shards {
				key := fmt.Sprintf("ddq:{%s:%d}:tasks", plan.Plain, n)
				home, _ := redis.Set.MasterOf(redis, key)
				to := masters[r.rand.IntN(len(masters))]
				for to == home {
					to = masters[r.rand.IntN(len(masters))]
				}
				between := func() { _ = r.pause(ctx, 0, 20*time.Millisecond) }
				redis.Set.Move(redis, key, to, between)
			}
		})
	})
}
