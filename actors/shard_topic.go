package actors

import (
	"sync/atomic"
	"time"

	"github.com/ddq-io/ddq/actors/clock"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/store"
)

// shardConfig is what of a node's configuration concerns its shards.
type shardConfig struct {
	Horizon          time.Duration
	WheelBudget      int
	ReadyBudget      int
	WatchdogInterval time.Duration
}

// shardTopic is what the shards of a topic share with it and with each other. It is safe
// for concurrent use.
type shardTopic struct {
	settings  shardConfig
	config    atomic.Pointer[store.Topic]
	bodies    subscription.BodySize // of its tasks
	active    atomic.Int64          // when it was last used, in Unix nanoseconds
	reachable func(n int) bool      // whether hints of other nodes find a shard; none is claimed before
}

// shardSlot is a shard as its topic has it, over restarts of the actor.
type shardSlot struct {
	dozing *atomic.Bool // ticks are of no use to it
	clock  *clock.Clock // that its due times are on
}
