package runtime

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/ddq-io/ddq/actors/clock"
	"github.com/ddq-io/ddq/actors/engine"
	"github.com/ddq-io/ddq/actors/entity/relay"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/lease"
	"github.com/ddq-io/ddq/actors/loglevel"
	"github.com/ddq-io/ddq/actors/meter"
	"github.com/ddq-io/ddq/actors/metrics"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer"
)

// Runtime is what the actors of a node share. All of it is safe for concurrent use.
type Runtime struct {
	Name        string // of the node
	Store       store.Store
	Cells       store.Cells // nil: the store keeps none yet
	Calendars   *Calendars
	Definitions *Definitions
	Workflows   *Workflows
	Clock       *clock.Clock // of the machine that has the topics
	Wheel       *timer.Wheel
	Keeper      *lease.Keeper
	Fleet       *fleet.Membership
	Waiters     *Waiters
	Metrics     *metrics.Metrics
	Meter       *meter.Meter
	Tasks       *loglevel.Tasks // lines of what happens to tasks
	Log         *slog.Logger
	Root        *actor.RootContext
	Restarts    *engine.RestartStrategy
	Pool        *engine.Pool
	Bodies      *subscription.NodeBudget
	Random      func() float64 // in [0, 1)

	Life

	ManyClocks bool // shards may be on machines whose clocks differ

	LastSub atomic.Int64 // id of a subscription: no two of the process have the same

	// Refresh reads an open topic's configuration again.
	Refresh func(ctx context.Context, topic string) error

	Topics TopicCalls
}

// Life is where a node is in its life.
type Life struct {
	Running  atomic.Bool
	Stopping atomic.Bool  // also once it has stopped
	Used     atomic.Int64 // when a topic was last used, in Unix nanoseconds
}

// TopicCalls are how a shard reaches those of other topics.
type TopicCalls struct {
	// Gate says how much work each topic takes that shards of the node send.
	Gate *relay.Gate

	// Of returns what a topic is. With create it is made where enqueues do that.
	Of func(ctx context.Context, topic string, create bool) (*store.Topic, *problem.Error)

	// Stored returns what the store says of a topic. Of may be behind another node's change by a
	// second or two.
	Stored func(ctx context.Context, topic string) (*store.Topic, *problem.Error)

	// TellPending tells a shard that a store call made tasks pending. It is a hint.
	TellPending func(at store.Shard, seq int64, tasks ...store.Entry)

	// TellCommitted tells a shard of a commit that was made, and the workers of holds that it asks
	// to end. It is a hint.
	TellCommitted func(*fleet.Committed)

	// OpenQueues tells the shards of outbox queues that their topics take some of what is in them. It is a hint:
	// the gate opens them again.
	OpenQueues func([]store.Queue)

	// TellFreed tells a topic that something may be there of limits that it waits for. It is a hint.
	TellFreed func(fleet.FreedNotice)
}

// Use records that a topic is in use now, which was active before.
func (rt *Runtime) Use(active *atomic.Int64) {
	now := time.Now().UnixNano()
	active.Store(now)
	rt.Used.Store(now)
}

// Send puts a message into an actor's mailbox. It does not wait.
func (rt *Runtime) Send(to *actor.PID, m any) { rt.Root.Send(to, m) }

// Props makes one actor, which is restarted with backoff for ever.
func (rt *Runtime) Props(producer actor.Producer) *actor.Props {
	return engine.Props(producer, rt.Pool, rt.Restarts, FailLate)
}

// NoteUnseen records that a node is alive, by its lease in the store. One that is no member, so
// that gossip between the two is cut, is told of.
func (rt *Runtime) NoteUnseen(node string) {
	if rt.Fleet.NoteUnseen(node) {
		rt.Log.Warn("a node uses this store, and gossip does not show it: its shards and this node's go to where workers are; "+
			"open the gossip port between the two (--gossip-addr, --join), or give one of them another store", "node", node)
	}
}

// Serving returns the error for new work on a node that takes none.
func (rt *Runtime) Serving() *problem.Error {
	switch {
	case rt.Stopping.Load():
		return problem.Draining()
	case !rt.Running.Load():
		return &problem.Error{Kind: problem.Unavailable, Reason: "STARTING", Message: "the node is not running", RetryAfter: problem.RetrySoon}
	}
	return nil
}

// NewShardClock returns the clock that the due times of a shard are on: the node's
// where the store has one clock, else one that learns from calls about this shard.
func (rt *Runtime) NewShardClock() *clock.Clock {
	if rt.ManyClocks {
		return rt.Clock.Other()
	}
	return rt.Clock
}

// Latest is a moment that the store's clock has not passed.
func (rt *Runtime) Latest() store.Millis { return clock.CeilMillis(rt.Clock.Latest()) }
