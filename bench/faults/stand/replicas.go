package stand

import (
	"fmt"
	"time"

	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// The kinds of stores with replicas. The fast ones do not wait for them, and may lose
// with a primary what only it had.
const (
	RedisSentinel     = "redis-sentinel"
	RedisSentinelFast = "redis-sentinel-fast"
	RedisSentinelAll  = "redis-sentinel-all" // waits for all replicas
	RedisCluster      = "redis-cluster"
	RedisClusterFast  = "redis-cluster-fast"
)

// waiting is what makes the store wait for replicas before it answers.
func waiting(kind string) string {
	switch kind {
	case RedisSentinelFast, RedisClusterFast:
		return ""
	case RedisSentinelAll:
		return "?wait_replicas=2"
	}
	return "?wait_replicas=1"
}

// The patience with a primary: until it is to fail, a slow machine is no reason.
const (
	Calmly  = time.Minute
	Briskly = time.Second
)

// openReplicated starts a store of one of the kinds above.
func (s *Stand) openReplicated(kind string) (Store, error) {
	host := redistest.Loopback
	if s.Net != nil {
		var err error
		if host, err = s.Net.atSwitch(RedisPlace); err != nil {
			return nil, err
		}
	}
	return openReplicated(kind, host)
}

func openReplicated(kind, host string) (Store, error) {
	s := &stage{}
	var opened Store
	err := s.Try(func() {
		switch kind {
		case RedisSentinel, RedisSentinelFast, RedisSentinelAll:
			set := &Sentinel{s, redistest.StartSentinelAt(s, host), waiting(kind)}
			set.Patience(Calmly)
			opened = set
		case RedisCluster, RedisClusterFast:
			set := &Cluster{s, redistest.StartClusterAt(s, host, 3, 2), waiting(kind)}
			set.Patience(Calmly)
			opened = set
		}
	})
	if err != nil {
		_ = s.close() // the first error says it all
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	return opened, nil
}

// Sentinel is a primary, two replicas and three sentinels.
type Sentinel struct {
	*stage
	Set   *redistest.Sentinel
	query string
}

func (s *Sentinel) url() string { return s.Set.URL() + s.query }

// Primary is the one that a shard lies on.
func (s *Sentinel) Primary(string) (*redistest.Server, func()) {
	return s.Set.Primary(s), func() { s.Set.AwaitTakeover(s) }
}

// Patience sets how long the primary may be silent.
func (s *Sentinel) Patience(d time.Duration) { s.Set.Patience(s, d) }

// AwaitFollows waits until a server is a replica.
func (s *Sentinel) AwaitFollows(server *redistest.Server) { server.AwaitFollows(s) }

// Cluster is three masters with two replicas each.
type Cluster struct {
	*stage
	Set   *redistest.Cluster
	query string
}

func (s *Cluster) url() string { return s.Set.URL() + s.query }

// Primary is the one that a shard lies on.
func (s *Cluster) Primary(shard string) (*redistest.Server, func()) {
	server, _ := s.Set.MasterOf(s, shard)
	return server, func() { s.Set.AwaitTakeover(s, shard) }
}

// Patience sets how long a master may be silent.
func (s *Cluster) Patience(d time.Duration) { s.Set.Patience(s, d) }

// AwaitFollows waits until a server is a replica.
func (s *Cluster) AwaitFollows(server *redistest.Server) { server.AwaitFollows(s) }

// Replicated is what both have in common.
type Replicated interface {
	Store
	Try(func()) error
	// Primary returns the server that the keys of a shard lie on, and what to call
	// to wait until another one has taken its place.
	Primary(shard string) (*redistest.Server, func())
	// Patience sets how long a primary may be silent before another takes over.
	Patience(time.Duration)
	// AwaitFollows waits until a server follows another one.
	AwaitFollows(*redistest.Server)
}
