package faults

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"strings"

	"github.com/ddq-io/ddq/bench"
)

// store is what the nodes keep tasks in.
type store interface {
	url() string // for --store
	close() error
}

// The kinds of stores, as --store names them.
const (
	embedded      = "embedded"
	redisEverysec = "redis-everysec"
	redisAlways   = "redis-always"
)

// stores are all kinds.
func stores() []string {
	return []string{embedded, redisEverysec, redisAlways, redisSentinel, redisSentinelFast, redisSentinelAll, redisCluster, redisClusterFast}
}

// open starts the store of a kind.
func (s *stand) open(ctx context.Context, kind string) (store, error) {
	switch kind {
	case embedded:
		return inNode{}, nil
	case redisEverysec, redisAlways:
		return s.openRedis(ctx, strings.TrimPrefix(kind, "redis-"))
	case redisSentinel, redisSentinelFast, redisSentinelAll, redisCluster, redisClusterFast:
		return s.openReplicated(kind)
	}
	return nil, fmt.Errorf("unknown store %q", kind)
}

// openRedis starts a redis-server, in its place where there is a network, on the disk
// where there is one.
func (s *stand) openRedis(ctx context.Context, fsync string) (store, error) {
	c := bench.RedisConfig{Fsync: fsync}
	if s.disk != nil {
		c.Dir = s.disk.dir
	}
	if s.skew != nil {
		c.Command = s.skew.under
	}
	host, err := s.host(redisPlace)
	if err != nil {
		return nil, err
	}
	c.Addr = net.JoinHostPort(host, "7379")
	if s.net != nil {
		c.Command = func(name string, args ...string) *exec.Cmd {
			return s.net.in(redisPlace, append([]string{name}, args...)...)
		}
	}
	r, err := c.Start(ctx, s.box)
	if err != nil {
		return nil, err
	}
	if s.relayed {
		if s.relay, err = newRelay(host, c.Addr); err != nil {
			return nil, err
		}
		return &oneRedis{r, s.relay.Addr().String()}, nil
	}
	return &oneRedis{r, c.Addr}, nil
}

// inNode is the embedded store.
type inNode struct{}

func (inNode) url() string  { return embedded }
func (inNode) close() error { return nil }

// oneRedis is a redis-server; the box stops it.
type oneRedis struct {
	*bench.Redis
	via string // address for nodes
}

func (r *oneRedis) url() string { return "redis://" + r.via }
func (*oneRedis) close() error  { return nil }
