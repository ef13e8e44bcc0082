package faults

import (
	"context"
	"fmt"
	"time"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// The kinds of stores with replicas. The fast ones do not wait for them, and may lose
// with a primary what only it had.
const (
	redisSentinel     = "redis-sentinel"
	redisSentinelFast = "redis-sentinel-fast"
	redisSentinelAll  = "redis-sentinel-all" // waits for all replicas
	redisCluster      = "redis-cluster"
	redisClusterFast  = "redis-cluster-fast"
)

// waiting is what makes the store wait for replicas before it answers.
func waiting(kind string) string {
	switch kind {
	case redisSentinelFast, redisClusterFast:
		return ""
	case redisSentinelAll:
		return "?wait_replicas=2"
	}
	return "?wait_replicas=1"
}

func replicated() []string { return []string{redisSentinel, redisCluster} }

// replicatedFast are those that do not wait.
func replicatedFast() []string { return []string{redisSentinelFast, redisClusterFast} }

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
			Allow: []ledger.Allowance{{Fault: "failover-fast", Before: time.Second}},
		},
		{
			Name: "primary-pause", What: "SIGSTOP of a primary, for long enough that another takes over, then SIGCONT", Stores: replicated(), strike: pausePrimary, Tokens: true,
			Cost: "no service for what lies there until it wakes or another is elected; what it still accepts ends unknown",
		},
		{
			Name: "handover", What: "sentinels make another server the primary (SENTINEL FAILOVER), and the old one lives",
			Stores: []string{redisSentinel}, strike: handOver, once: true, Tokens: true,
			Cost:  "what was answered meanwhile may be undone, whatever wait_replicas says: the old primary goes on, with the replicas that have not been told",
			Allow: []ledger.Allowance{{Fault: "handover", Before: time.Second}},
		},
		{
			Name: "handover-all", What: "the same with wait_replicas for all replicas", Stores: []string{redisSentinelAll}, strike: handOver, once: true, Tokens: true,
			Cost: "no service until the old primary is a replica",
		},
		{
			Name: "slots", What: "the slots of all shards are moved to a new master and back, key by key", Stores: []string{redisCluster}, strike: moveSlots,
			Cost: "a shard waits while its slot is moved",
		},
	}
}

// The patience with a primary: until it is to fail, a slow machine is no reason.
const (
	calmly  = time.Minute
	briskly = time.Second
)

// openReplicated starts a store of one of the kinds above.
func (s *stand) openReplicated(kind string) (store, error) {
	host := redistest.Loopback
	if s.net != nil {
		var err error
		if host, err = s.net.atSwitch(redisPlace); err != nil {
			return nil, err
		}
	}
	return openReplicated(kind, host)
}

func openReplicated(kind, host string) (store, error) {
	s := &stage{}
	var opened store
	err := s.try(func() {
		switch kind {
		case redisSentinel, redisSentinelFast, redisSentinelAll:
			set := &sentinelStore{s, redistest.StartSentinelAt(s, host), waiting(kind)}
			set.patience(calmly)
			opened = set
		case redisCluster, redisClusterFast:
			set := &clusterStore{s, redistest.StartClusterAt(s, host, 3, 2), waiting(kind)}
			set.patience(calmly)
			opened = set
		}
	})
	if err != nil {
		_ = s.close() // the first error says it all
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	return opened, nil
}

// sentinelStore is a primary, two replicas and three sentinels.
type sentinelStore struct {
	*stage
	set   *redistest.Sentinel
	query string
}

func (s *sentinelStore) url() string { return s.set.URL() + s.query }

// primary is the one that a shard lies on.
func (s *sentinelStore) primary(string) (*redistest.Server, func()) {
	return s.set.Primary(s), func() { s.set.AwaitTakeover(s) }
}

func (s *sentinelStore) patience(d time.Duration) { s.set.Patience(s, d) }

func (s *sentinelStore) awaitFollows(server *redistest.Server) { server.AwaitFollows(s) }

// clusterStore is three masters with two replicas each.
type clusterStore struct {
	*stage
	set   *redistest.Cluster
	query string
}

func (s *clusterStore) url() string { return s.set.URL() + s.query }

func (s *clusterStore) primary(shard string) (*redistest.Server, func()) {
	server, _ := s.set.MasterOf(s, shard)
	return server, func() { s.set.AwaitTakeover(s, shard) }
}

func (s *clusterStore) patience(d time.Duration) { s.set.Patience(s, d) }

func (s *clusterStore) awaitFollows(server *redistest.Server) { server.AwaitFollows(s) }

// primaries is what both have in common.
type primaries interface {
	store
	try(func()) error
	// primary returns the server that the keys of a shard lie on, and what to call
	// to wait until another one has taken its place.
	primary(shard string) (*redistest.Server, func())
	// patience sets how long a primary may be silent before another takes over.
	patience(time.Duration)
	// awaitFollows waits until a server follows another one.
	awaitFollows(*redistest.Server)
}

// anyShard is a key of a shard of the topic.
func (r *round) anyShard() string {
	return fmt.Sprintf("ddq:{%s:%d}:tasks", plain, r.rand.IntN(r.shards))
}

func failOver(ctx context.Context, r *round) error {
	redis := r.store.(primaries)
	return r.broken(ctx, "kill -9 of a primary", func() error {
		err := redis.try(func() {
			server, awaitTakeover := redis.primary(r.anyShard())
			redis.patience(briskly)
			server.Kill()
			awaitTakeover()
			server.Restart()
			redis.patience(calmly)
			redis.awaitFollows(server)
		})
		if err != nil {
			return err
		}
		return r.awaitWhole(ctx)
	})
}

// pausePrimary wakes it up once another has taken its place, or before anybody noticed.
func pausePrimary(ctx context.Context, r *round) error {
	redis := r.store.(primaries)
	brief := r.strikes%2 == 1
	return r.broken(ctx, "pause a primary", func() error {
		err := redis.try(func() {
			server, awaitTakeover := redis.primary(r.anyShard())
			if !brief {
				redis.patience(briskly)
			}
			server.Pause()
			defer server.Resume()
			if brief {
				_ = r.pause(ctx, 200*time.Millisecond, 2*time.Second)
				return
			}
			awaitTakeover()
			server.Resume()
			redis.patience(calmly)
			redis.awaitFollows(server)
		})
		if err != nil {
			return err
		}
		return r.awaitWhole(ctx)
	})
}

func handOver(ctx context.Context, r *round) error {
	redis := r.store.(*sentinelStore)
	return r.broken(ctx, "SENTINEL FAILOVER", func() error {
		err := redis.try(func() {
			before := redis.set.Primary(redis)
			redis.set.HandOver(redis)
			for end := time.Now().Add(upWithin); redis.set.Primary(redis) == before; {
				if time.Now().After(end) {
					redis.Fatal("the sentinels did not make another server the primary")
				}
				_ = r.sleep(ctx, 20*time.Millisecond)
			}
			redis.set.AwaitTakeover(redis)
		})
		if err != nil {
			return err
		}
		return r.awaitWhole(ctx)
	})
}

func moveSlots(ctx context.Context, r *round) error {
	redis := r.store.(*clusterStore)
	return r.broken(ctx, "move the slots of all shards", func() error {
		return redis.try(func() {
			masters := redis.set.Masters(redis)
			for n := range r.shards {
				key := fmt.Sprintf("ddq:{%s:%d}:tasks", plain, n)
				home, _ := redis.set.MasterOf(redis, key)
				to := masters[r.rand.IntN(len(masters))]
				for to == home {
					to = masters[r.rand.IntN(len(masters))]
				}
				between := func() { _ = r.pause(ctx, 0, 20*time.Millisecond) }
				redis.set.Move(redis, key, to, between)
			}
		})
	})
}
