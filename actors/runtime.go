package actors

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/ddq-io/ddq/actors/clock"
	"github.com/ddq-io/ddq/actors/engine"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/lease"
	"github.com/ddq-io/ddq/actors/metrics"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer"
)

// runtime is what the actors of a node share. All of it is safe for concurrent use.
type runtime struct {
	name    string // of the node
	store   store.Store
	clock   *clock.Clock // of the machine that has the topics
	wheel   *timer.Wheel
	keeper  *lease.Keeper
	fleet   *fleet.Membership
	waiters *Waiters
	metrics *metrics.Metrics
	log     *slog.Logger
	root    *actor.RootContext
	nurse   *engine.RestartStrategy
	pool    *engine.Pool
	bodies  *subscription.NodeBudget
	random  func() float64 // in [0, 1)
	lastSub atomic.Int64   // id of the last subscription: no two of the process have the same

	running  atomic.Bool
	stopping atomic.Bool // also once it has stopped

	manyClocks bool // shards may be on machines whose clocks differ

	used atomic.Int64 // when a topic was last used, in Unix nanoseconds

	// refresh reads an open topic's configuration again.
	refresh func(ctx context.Context, topic string) error
}

// use records that a topic is in use now, which was active before.
func (rt *runtime) use(active *atomic.Int64) {
	now := time.Now().UnixNano()
	active.Store(now)
	rt.used.Store(now)
}

func (rt *runtime) send(to *actor.PID, m any) { rt.root.Send(to, m) }

// props makes one actor, which is restarted with backoff for ever.
func (rt *runtime) props(producer actor.Producer) *actor.Props {
	return engine.Props(producer, rt.pool, rt.nurse, failLate)
}

// Serving returns the error for new work on a node that takes none.
func (rt *runtime) Serving() *problem.Error {
	switch {
	case rt.stopping.Load():
		return problem.Draining()
	case !rt.running.Load():
		return &problem.Error{Kind: problem.Unavailable, Reason: "STARTING", Message: "the node is not running", RetryAfter: problem.RetrySoon}
	}
	return nil
}
