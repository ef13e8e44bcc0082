package faults

import (
	"context"
	"fmt"
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

// openStore starts a store of a kind.
func openStore(ctx context.Context, box *bench.Box, kind string) (store, error) {
	switch kind {
	case embedded:
		return inNode{}, nil
	case redisEverysec, redisAlways:
		r, err := bench.StartRedis(ctx, box, strings.TrimPrefix(kind, "redis-"))
		if err != nil {
			return nil, err
		}
		return &oneRedis{r}, nil
	case redisSentinel, redisSentinelFast, redisCluster, redisClusterFast:
		return openReplicated(kind)
	}
	return nil, fmt.Errorf("unknown store %q", kind)
}

// inNode is the embedded store.
type inNode struct{}

func (inNode) url() string  { return embedded }
func (inNode) close() error { return nil }

// oneRedis is a redis-server; the box stops it.
type oneRedis struct{ *bench.Redis }

func (r *oneRedis) url() string { return "redis://" + r.Addr }
func (*oneRedis) close() error  { return nil }
