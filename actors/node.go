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
	"github.com/ddq-io/ddq/actors/entity/relay"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/lease"
	"github.com/ddq-io/ddq/actors/loglevel"
	"github.com/ddq-io/ddq/actors/meter"
	"github.com/ddq-io/ddq/actors/metrics"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/runtime"
	"github.com/ddq-io/ddq/actors/shard"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer"
)

// Node is the runtime of one node: the plain methods that api/server calls.
// They are safe for concurrent use between Start and Stop, wait for their answer,
// and return *Error throughout.
type Node struct {
	rt       *runtime.Runtime
	cfg      Config
	topics   *Topics
	clocks   *Clocks
	started  time.Time
	engine   *actor.ActorSystem
	stoppers []func() // see BeforeStop
	health   health
}

// New makes a node on a store. The store stays the caller's to close, after
// Stop. A nil registerer keeps the metrics private.
func New(cfg Config, st store.Store, log *slog.Logger, reg prometheus.Registerer) *Node {
	if reg == nil {
		reg = prometheus.NewRegistry()
	}
	m := metrics.New(reg)
	cfg = cfg.WithDefaults()
	levels := loglevel.Of(log)
	rt := &runtime.Runtime{Name: cfg.Node, Waiters: runtime.NewWaiters(), Metrics: m, Log: levels.Logger(), Random: rand.Float64}
	s := &Node{rt: rt, cfg: cfg, topics: &Topics{rt: rt, lives: shardLives{rt}, wakes: wakeTimes{rt: rt}}, clocks: &Clocks{rt: rt}}
	s.topics.cfg, s.clocks.topics = &s.cfg, s.topics
	rt.Clock = clock.New(s.clocks.onJump)
	rt.Meter = meter.New(rt.Clock.Millis)
	rt.Tasks = levels.Tasks(cfg.Node, rt.Clock.Millis)
	rt.Store = rt.Tasks.Store(rt.Meter.Store(metrics.Observe(st, m, s.clocks.Of, s.topics.heardParcels)))
	if cells, keeps := st.(store.Cells); keeps {
		cells = rt.Tasks.Cells(rt.Meter.Cells(metrics.ObserveCells(cells, s.clocks.Of, s.topics.heardParcels)))
		rt.Cells = &relay.Sender{Entities: cells, All: func() bool { return rt.Fleet.ReadQueues() }, Clock: s.clocks.NowAt}
	}
	if early, is := st.(store.Early); is {
		early.OnInBox(s.topics.heardParcels)
	}
	rt.Calendars, rt.Definitions, rt.Workflows = runtime.NewCalendars(rt.Cells), runtime.NewDefinitions(), runtime.NewWorkflows()
	failing, _ := st.(failingStore)
	s.health = health{rt: rt, failing: failing}
	rt.Bodies = &subscription.NodeBudget{Most: int64(cfg.UnsentBytes), Gauge: m.Unsent}
	rt.Fleet = fleet.NewMembership(cfg.Node)
	rt.Fleet.SetAddr(cfg.Addr)
	rt.Refresh = s.topics.Refresh
	rt.Topics = runtime.TopicCalls{Gate: relay.NewGate(), Of: s.topics.topicOf, Stored: s.topics.storedTopic, TellPending: s.topics.tellPending, TellCommitted: s.topics.tellCommitted, OpenQueues: func(queues []store.Queue) { openQueues(s.topics, queues) }, TellFreed: func(n fleet.FreedNotice) { tellFreed(s.topics, n) }}
	rt.Restarts = engine.NewRestartStrategy(rt.Log, m.Restarts.Inc, runtime.FailLost)
	rt.Keeper = lease.New(rt.Store, rt.Log, store.Session{
		Node: cfg.Node, Start: store.NewToken(), TTL: cfg.LeaseTTL, Addr: cfg.Addr,
	})
	rt.Keeper.Addr = func() string { return rt.Fleet.Self().Addr }
	rt.Keeper.OnLost = func() { s.topics.broadcast(&shard.LeaseLost{}) }
	rt.Keeper.OnBack = func() {
		s.setAbsent(false)
		s.topics.broadcast(&shard.LeaseBack{})
	}
	rt.Keeper.OnAbsent = func() { s.setAbsent(true) }
	rt.Keeper.OnRenewed = func(sent, received, now time.Time) {
		s.clocks.renewed(sent, received, now)
		m.Unseen.Set(float64(len(rt.Fleet.Unseen())))
	}
	rt.Keeper.OnForgotten = func() {
		m.Forgotten.Inc()
		s.topics.forgotten.keep(s.topics)
	}
	rt.Keeper.OnWanted = s.Peer().Wanted
	return s
}

// SetAbsent has the others take the shards of a node that cannot reach the store,
// though they see it, or lets it own shards again.
func (s *Node) setAbsent(absent bool) {
	if err := s.rt.Fleet.SetAbsent(absent); err != nil {
		s.rt.Log.Warn("not announced whether this node can own shards", "err", err)
	}
}

// Join makes this node one of a fleet. It is called before Start. The fleet knows
// this node by the name that it has here.
func (s *Node) Join(f fleet.Fleet, p fleet.Peers) { s.rt.Fleet.Join(f, p) }

// AskFirst has Start ask who may be at the address of a process of the node's name before it takes the name. It is called
// before Start.
func AskFirst(s *Node, answers func(ctx context.Context, addr string) bool) {
	s.rt.Keeper.Answers = answers
}

// Start opens the node's session and the topics that have tasks. It fails when
// the store cannot be reached.
func (s *Node) Start(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	s.rt.Keeper.Start()
	s.rt.Pool = engine.NewPool()
	s.rt.Wheel = timer.New(timer.Config{Now: s.rt.Clock.Now, Logger: s.rt.Log})
	s.engine = engine.New(s.rt.Log, runtime.FailLate)
	return s.run(ctx)
}

// BeforeStop has stop called once by Stop, after the drain and before the shards are
// released.
func (s *Node) BeforeStop(stop func()) { s.stoppers = append(s.stoppers, stop) }

// enter learns the store's clock and opens the session.
func (s *Node) enter(ctx context.Context) error {
	info, err := s.rt.Store.Info(ctx)
	if err != nil {
		return fmt.Errorf("ask what the store is: %w", err)
	}
	s.rt.ManyClocks = info.ManyClocks
	if err := s.clocks.Read(ctx); err != nil {
		return fmt.Errorf("read the store's clock: %w", err)
	}
	if err := s.rt.Keeper.Open(ctx); err != nil {
		return fmt.Errorf("open the session of node %q: %w", s.rt.Name, err)
	}
	s.started = time.Now()
	s.rt.Fleet.Update()
	return nil
}

// run starts the actors in the engine, on the pool and the wheel.
func (s *Node) run(ctx context.Context) error {
	s.rt.Root = s.engine.Root
	s.topics.supervisor = s.rt.Root.Spawn(s.rt.Props(func() actor.Actor {
		return &supervisor{Runtime: s.rt, shards: s.cfg.shards(), topics: make(map[string]*Topic)}
	}))
	s.rt.Running.Store(true)
	if err := s.topics.OpenActive(ctx); err != nil {
		return fmt.Errorf("open topics: %w", err)
	}
	return nil
}

// Drain refuses new work, tells subscriptions to go, and waits until what they
// hold is settled or ctx ends. Settlements are taken all the while.
func (s *Node) Drain(ctx context.Context) {
	if s.rt.Stopping.Swap(true) || !s.rt.Running.Load() {
		return
	}
	if !s.rt.Fleet.Alone() {
		// The shards are handed over now, not when the last worker is done.
		if err := s.rt.Fleet.SetDrained(true); err != nil {
			s.rt.Log.Warn("draining not announced", "err", err)
		}
		s.rt.Fleet.Update()
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
		s.rt.Send(ref.pid, &drainTopic{grace: grace, done: done})
	})
	awaitAll(ctx, waits)
}

// Stop drains, finishes store calls, releases the shards and stops everything
// the node started. What ctx cuts short is left to the leases and holds.
func (s *Node) Stop(ctx context.Context) error {
	s.Drain(ctx)
	if !s.rt.Running.Swap(false) {
		return nil
	}
	for _, stop := range s.stoppers {
		stop()
	}
	s.releaseShards(ctx)
	s.end()
	s.rt.Keeper.End(ctx)
	s.engine.Shutdown()
	return ctx.Err()
}

// end stops the actors and everything under them.
func (s *Node) end() {
	s.rt.Root.PoisonFuture(s.topics.supervisor).Wait()
	s.rt.Keeper.Close()
	s.rt.Restarts.Close()
	s.rt.Wheel.Close()
	s.rt.Pool.Close()
}

func (s *Node) releaseShards(ctx context.Context) {
	var waits []chan struct{}
	s.topics.Each(func(ref *Topic) { waits = ref.release(waits) })
	awaitAll(ctx, waits)
}

// ViewChanged tells every topic that other nodes came or went.
func (s *Node) ViewChanged() { s.topics.broadcast(&viewChanged{}) }

// ErrNoShard is of a shard that its topic has not.
func ErrNoShard(at store.Shard) *problem.Error {
	return problem.BadField("shard", "OUT_OF_RANGE_FIELD", "topic %q has no shard %d", at.Topic, at.N)
}
