package stand

import (
	"context"
	"fmt"
	"os/exec"
	"strings"

	"github.com/ddq-io/ddq/bench/box"
)

// Store is what the nodes keep tasks in.
type Store interface {
	url() string // for --store
	close() error
}

// The kinds of stores, as --store names them.
const (
	Embedded      = "embedded"
	RedisEverysec = "redis-everysec"
	RedisAlways   = "redis-always"
)

// Stores are all kinds.
func Stores() []string {
	return []string{Embedded, RedisEverysec, RedisAlways, RedisSentinel, RedisSentinelFast, RedisSentinelAll, RedisCluster, RedisClusterFast}
}

// open starts the store of a kind.
func (s *Stand) open(ctx context.Context, kind string) (Store, error) {
	switch kind {
	case Embedded:
		return inNode{}, nil
	case RedisEverysec, RedisAlways:
		return s.openRedis(ctx, strings.TrimPrefix(kind, "redis-"))
	case RedisSentinel, RedisSentinelFast, RedisSentinelAll, RedisCluster, RedisClusterFast:
		return s.openReplicated(kind)
	}
	return nil, fmt.Errorf("unknown store %q", kind)
}

// openRedis starts a redis-server, in its place where there is a network, on the disk
// where there is one.
func (s *Stand) openRedis(ctx context.Context, fsync string) (Store, error) {
	c := box.RedisConfig{Fsync: fsync}
	if s.Disk != nil {
		c.Dir = s.Disk.dir
	}
	if s.skew != nil {
		c.Command = s.skew.under
	}
	var err error
	if c.Addr, err = s.addr(RedisPlace, "7379"); err != nil {
		return nil, err
	}
	if s.Net != nil {
		c.Command = func(name string, args ...string) *exec.Cmd {
			return s.Net.in(RedisPlace, append([]string{name}, args...)...)
		}
	}
	r, err := c.Start(ctx, s.box)
	if err != nil {
		return nil, err
	}
	if s.config.Relayed {
		if s.Relay, err = newRelay(c.Addr); err != nil {
			return nil, err
		}
		return &Redis{r, s.Relay.Addr().String()}, nil
	}
	return &Redis{r, c.Addr}, nil
}

// inNode is the embedded store.
type inNode struct{}

// Redis is a redis-server; the box stops it.
type Redis struct {
	*box.Redis
	via string // address for nodes
}

func (r *Redis) url() string { return "redis://" + r.via }
func (*Redis) close() error  { return nil }

func (inNode) url() string  { return Embedded }
func (inNode) close() error { return nil }
