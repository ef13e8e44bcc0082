package actors

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/prometheus/client_golang/prometheus"

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

// Node is the runtime of one node: the plain methods that api/server calls.
// They are safe for concurrent use between Start and Stop, wait for their answer,
// and return *Error throughout.
type Node struct {
	rt       *runtime
	cfg      Config
	topics   *Topics
	clocks   *Clocks
	started  time.Time
	engine   *actor.ActorSystem
	stoppers []func() // see BeforeStop
}

// New makes a node on a store. The store stays the caller's to close, after
// Stop. A nil registerer keeps the metrics private.
func New(cfg Config, st store.Store, log *slog.Logger, reg prometheus.Registerer) *Node {
	if reg == nil {
		reg = prometheus.NewRegistry()
	}
	m := metrics.New(reg)
	cfg = cfg.WithDefaults()
	rt := &runtime{name: cfg.Node, waiters: newWaiters(), metrics: m, log: log, random: rand.Float64}
	s := &Node{rt: rt, cfg: cfg, topics: &Topics{rt: rt}, clocks: &Clocks{rt: rt}}
	s.topics.cfg, s.topics.clocks, s.clocks.topics = &s.cfg, s.clocks, s.topics
	rt.clock = clock.New(s.clocks.onJump)
	rt.store = metrics.ObservedStore{Store: st, Metrics: m, ClockOf: s.clocks.Of}
	rt.bodies = &subscription.NodeBudget{Most: int64(cfg.UnsentBytes), Gauge: m.Unsent}
	rt.fleet = fleet.NewMembership(cfg.Node)
	rt.refresh = s.topics.Refresh
	rt.nurse = engine.NewRestartStrategy(log, m.Restarts.Inc, failLost)
	rt.keeper = lease.New(rt.store, log, store.Session{
		Node: cfg.Node, Start: store.NewToken(), TTL: cfg.LeaseTTL, Addr: cfg.Addr,
	})
	rt.keeper.OnLost = func() { s.topics.broadcast(&leaseLost{}) }
	rt.keeper.OnBack = func() {
		s.setAbsent(false)
		s.topics.broadcast(&leaseBack{})
	}
	rt.keeper.OnAbsent = func() { s.setAbsent(true) }
	return s
}

// SetAbsent has the others take the shards of a node that cannot reach the store,
// though they see it, or lets it own shards again.
func (s *Node) setAbsent(absent bool) {
	if err := s.rt.fleet.SetAbsent(absent); err != nil {
		s.rt.log.Warn("not announced whether this node can own shards", "err", err)
	}
}

// Join makes this node one of a fleet. It is called before Start. The fleet knows
// this node by the name that it has here.
func (s *Node) Join(f fleet.Fleet, p fleet.Peers) { s.rt.fleet.Join(f, p) }

// Start opens the node's session and the topics that have tasks. It fails when
// the store cannot be reached.
func (s *Node) Start(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	s.rt.keeper.Start()
	s.rt.pool = engine.NewPool()
	s.rt.wheel = timer.New(timer.Config{Now: s.rt.clock.Now, Logger: s.rt.log})
	s.engine = engine.New(s.rt.log, failLate)
	return s.run(ctx)
}

// BeforeStop has stop called once by Stop, after the drain and before the shards are
// released.
func (s *Node) BeforeStop(stop func()) { s.stoppers = append(s.stoppers, stop) }

// enter learns the store's clock and opens the session.
func (s *Node) enter(ctx context.Context) error {
	info, err := s.rt.store.Info(ctx)
	if err != nil {
		return fmt.Errorf("ask what the store is: %w", err)
	}
	s.rt.manyClocks = info.ManyClocks
	if err := s.clocks.Read(ctx); err != nil {
		return fmt.Errorf("read the store's clock: %w", err)
	}
	if err := s.rt.keeper.Open(ctx); err != nil {
		return fmt.Errorf("open the session of node %q: %w", s.rt.name, err)
	}
	s.started = time.Now()
	s.rt.fleet.Update()
	return nil
}

// run starts the actors in the engine, on the pool and the wheel.
func (s *Node) run(ctx context.Context) error {
	s.rt.root = s.engine.Root
	s.topics.supervisor = s.rt.root.Spawn(s.rt.props(func() actor.Actor {
		return &supervisor{runtime: s.rt, shards: s.cfg.shards(), topics: make(map[string]*Topic)}
	}))
	s.rt.running.Store(true)
	if err := s.topics.OpenActive(ctx); err != nil {
		return fmt.Errorf("open topics: %w", err)
	}
	return nil
}

// Drain refuses new work, tells subscriptions to go, and waits until what they
// hold is settled or ctx ends. Settlements are taken all the while.
func (s *Node) Drain(ctx context.Context) {
	if s.rt.stopping.Swap(true) || !s.rt.running.Load() {
		return
	}
	if !s.rt.fleet.Alone() {
		// The shards are handed over now, not when the last worker is done.
		if err := s.rt.fleet.SetDrained(true); err != nil {
			s.rt.log.Warn("draining not announced", "err", err)
		}
		s.rt.fleet.Update()
		s.topics.broadcast(&viewChanged{})
	}
	grace := time.Duration(0)
	if deadline, ok := ctx.Deadline(); ok {
		grace = time.Until(deadline)
	}
	var waits []chan struct{}
	s.topics.Each(func(ref *Topic) {
		done := make(chan struct{})
		waits = append(waits, done)
		s.rt.send(ref.pid, &drainTopic{grace: grace, done: done})
	})
	awaitAll(ctx, waits)
}

// Stop drains, finishes store calls, releases the shards and stops everything
// the node started. What ctx cuts short is left to the leases and holds.
func (s *Node) Stop(ctx context.Context) error {
	s.Drain(ctx)
	if !s.rt.running.Swap(false) {
		return nil
	}
	for _, stop := range s.stoppers {
		stop()
	}
	s.releaseShards(ctx)
	s.end()
	s.engine.Shutdown()
	return ctx.Err()
}

// end stops the actors and everything under them.
func (s *Node) end() {
	s.rt.root.PoisonFuture(s.topics.supervisor).Wait()
	s.rt.keeper.Close()
	s.rt.nurse.Close()
	s.rt.wheel.Close()
	s.rt.pool.Close()
}

func (s *Node) releaseShards(ctx context.Context) {
	var waits []chan struct{}
	s.topics.Each(func(ref *Topic) { waits = ref.release(waits) })
	awaitAll(ctx, waits)
}

func awaitAll(ctx context.Context, waits []chan struct{}) {
	for _, w := range waits {
		select {
		case <-w:
		case <-ctx.Done():
			return
		}
	}
}

// Ready returns nil while the node serves, else why not.
func (s *Node) Ready() error {
	switch {
	case !s.rt.running.Load():
		return &problem.Error{Kind: problem.Unavailable, Reason: "STARTING", Message: "the node is not running"}
	case s.rt.stopping.Load():
		return problem.Draining()
	case s.rt.keeper.Err() != nil:
		return problem.AsError(s.rt.keeper.Err())
	}
	if who := s.rt.nurse.Sick(); who != "" {
		return &problem.Error{Kind: problem.Unavailable, Reason: "ACTOR_FAILING", Message: "an actor fails without end: " + who}
	}
	return nil
}

// ViewChanged tells every topic that other nodes came or went.
func (s *Node) ViewChanged() { s.topics.broadcast(&viewChanged{}) }

// DescribePeer says how this node fares.
func (s *Node) DescribePeer(ctx context.Context) (fleet.PeerStatus, error) {
	if !s.rt.running.Load() {
		return fleet.PeerStatus{}, s.rt.Serving()
	}
	status := fleet.PeerStatus{
		Node:        s.rt.name,
		Uptime:      time.Since(s.started),
		ClockOffset: time.Until(s.rt.clock.Now()),
	}
	var asked []chan fleet.OwnedShard
	s.topics.Each(func(ref *Topic) {
		status.Subscriptions += int(ref.subscriptions.Load())
		for _, pid := range ref.shards() {
			reply := make(chan fleet.OwnedShard, 1)
			asked = append(asked, reply)
			s.rt.send(pid, &describeShard{reply: reply})
		}
	})
	for _, reply := range asked {
		select {
		case d := <-reply:
			if d.Epoch != 0 {
				status.Shards = append(status.Shards, d)
			}
		case <-ctx.Done():
			return fleet.PeerStatus{}, problem.AsError(ctx.Err())
		}
	}
	return status, nil
}

// DrainPeer makes this node give up its shards, or take shards again.
func (s *Node) DrainPeer(draining bool) error {
	if s.rt.fleet.Alone() {
		return &problem.Error{Kind: problem.Precondition, Reason: "NO_FLEET", Field: "name",
			Message: "the node stands alone: there is nobody to hand its shards over to"}
	}
	return problem.AsError(s.rt.fleet.SetDrained(draining))
}

// ReleasePeerShard makes this node give up a shard that it owns. If it is placed
// here it is claimed again, with a new epoch.
func (s *Node) ReleasePeerShard(ctx context.Context, at store.Shard) error {
	ref, e := s.topics.Open(ctx, at.Topic, false)
	if e != nil {
		return e
	}
	if ref.shard(at.N) == nil {
		return ErrNoShard(at)
	}
	ref.tell(at.N, &handShard{})
	return nil
}

// ErrNoShard is of a shard that its topic has not.
func ErrNoShard(at store.Shard) *problem.Error {
	return problem.BadField("shard", "OUT_OF_RANGE_FIELD", "topic %q has no shard %d", at.Topic, at.N)
}
