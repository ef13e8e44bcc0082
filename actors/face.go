package actors

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/ddq-io/ddq/actors/clock"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/meter"
	"github.com/ddq-io/ddq/actors/metrics"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/runtime"
	"github.com/ddq-io/ddq/store"
)

// What use cases and upkeep see of a node and of an open topic. All of it is safe for
// concurrent use.

// Config is the node's configuration, with defaults filled in.
func (s *Node) Config() *Config { return &s.cfg }

// Store is the node's store. Stamps of its answers feed the node's clocks.
func (s *Node) Store() store.Store { return s.rt.Store }

// Cells are those of the node's store, nil when it keeps none.
func (s *Node) Cells() store.Cells { return s.rt.Cells }

// Calendars are what schedules leave out.
func (s *Node) Calendars() *runtime.Calendars { return s.rt.Calendars }

// Clock follows the store's clock; see NowAt for that of a shard.
func (s *Node) Clock() *clock.Clock { return s.rt.Clock }

// Topics are the topics that are open here.
func (s *Node) Topics() *Topics { return s.topics }

// Clocks are those of the store.
func (s *Node) Clocks() *Clocks { return s.clocks }

// LastUsed is when any topic was last used here, in Unix nanoseconds.
func (s *Node) LastUsed() int64 { return s.rt.Used.Load() }

// Membership is what the node knows of the other nodes.
func (s *Node) Membership() *fleet.Membership { return s.rt.Fleet }

// Members are those of the fleet, by name; a node that stands alone is one.
func (s *Node) Members() []fleet.Member {
	if v := s.rt.Fleet.View(); v != nil {
		return slices.Clone(v.Members())
	}
	return []fleet.Member{s.rt.Fleet.Self()}
}

// Describe says how a member of the fleet fares, this node or another.
func (s *Node) Describe(ctx context.Context, of fleet.Member, q fleet.StatusQuery) (fleet.PeerStatus, error) {
	if of.Name == s.cfg.Node {
		return s.Peer().Describe(ctx, q)
	}
	return s.rt.Fleet.Peers().Describe(ctx, of, q)
}

// AllTell refuses what waits for the ends of tasks while a node of a program is in the fleet
// that tells nobody of them.
func (s *Node) AllTell() *problem.Error {
	old := fleet.OldMember(s.rt.Fleet.View())
	if old == "" {
		return nil
	}
	return &problem.Error{Kind: problem.Precondition, Reason: "OLD_NODES", Message: fmt.Sprintf("node %q is of a version without schedules and workflows: update it first", old)}
}

// Peer is the node as other nodes see it.
func (s *Node) Peer() *Peer { return &Peer{s.rt, s.topics, s.Started} }

// Metrics are those of the node.
func (s *Node) Metrics() *metrics.Metrics { return s.rt.Metrics }

// Meter has the pulses of topics, as the node counts them.
func (s *Node) Meter() *meter.Meter { return s.rt.Meter }

// Log is where the node logs.
func (s *Node) Log() *slog.Logger { return s.rt.Log }

// Waiters are the calls that wait for tasks to be settled.
func (s *Node) Waiters() *runtime.Waiters { return s.rt.Waiters }

// Random is a number in [0, 1).
func (s *Node) Random() float64 { return s.rt.Random() }

// Started is when the node opened its session.
func (s *Node) Started() time.Time { return s.started }

// Running reports whether the node has started and not stopped.
func (s *Node) Running() bool { return s.rt.Running.Load() }

// Stopping reports whether the node drains or has stopped.
func (s *Node) Stopping() bool { return s.rt.Stopping.Load() }

// Ready returns nil while the node serves, else why not.
func (s *Node) Ready() error { return s.health.ready() }

// Failed returns what only another start of the process can help against, or nil: a
// store that failed for good, a session under this node's name that another process
// keeps, an actor that panics without end, for as long as it does. A store that is merely
// away is not among them: the node goes on when it is back.
func (s *Node) Failed() error { return s.health.failed() }

// Serving returns the error for new work on a node that takes none.
func (s *Node) Serving() *problem.Error { return s.rt.Serving() }

// Resolve runs a store call, and repeats it while its outcome is unknown: every mutating
// call of a store is safe to repeat with the same arguments. repeated tells that an answer
// was lost on the way: what the call did first is not in the results.
func (s *Node) Resolve(ctx context.Context, call func() error) (repeated bool, err error) {
	return s.rt.Resolve(ctx, call)
}

// StatsOf asks for all numbers of shards. On some stores that is a walk over the tasks
// that are due: what does without Ready and OldestMs asks for CountsOf.
func (s *Node) StatsOf(ctx context.Context, shards []store.Shard) ([]store.Stats, error) {
	return s.rt.StatsOf(ctx, shards)
}

// CountsOf asks for the numbers of shards that cost no walk over their tasks.
func (s *Node) CountsOf(ctx context.Context, shards []store.Shard) ([]store.Stats, error) {
	return s.rt.CountsOf(ctx, shards)
}

// TellSettled tells who waits for tasks of a shard, here and at other nodes, that they
// may be settled.
func (s *Node) TellSettled(at store.Shard, ids ...string) { s.rt.TellSettled(at, ids...) }

// TellWaiting asks the owner of a shard to tell when tasks are settled.
func (s *Node) TellWaiting(at store.Shard, ids []string, first bool) {
	s.rt.TellWaiting(at, ids, first)
}
