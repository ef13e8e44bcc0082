package actors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer"
)

// System is the runtime of one node: the plain methods that api/server calls.
// They are safe for concurrent use between Start and Stop, wait for their answer,
// and return *Error throughout.
type System struct {
	*runtime
	started    time.Time
	engine     *actor.ActorSystem
	supervisor *actor.PID
	sick       atomic.Pointer[string] // an actor that panics without end
	stopping   atomic.Bool
	running    atomic.Bool

	mu     turnstile // serializes opening and changing topics, and taking in what they are
	topics sync.Map  // name -> *topicRef
	turns  turns     // of topics
	tails  tails
	refresh
	indexer *indexer
}

// New makes a System on a store. The store stays the caller's to close, after
// Stop. A nil registerer keeps the metrics private.
func New(cfg Config, st store.Store, log *slog.Logger, reg prometheus.Registerer) *System {
	if reg == nil {
		reg = prometheus.NewRegistry()
	}
	m := newMetrics(reg)
	rt := &runtime{cfg: cfg.withDefaults(), waiters: newWaiters(), metrics: m, log: log, random: rand.Float64}
	s := &System{runtime: rt, mu: newTurnstile(), indexer: newIndexer()}
	rt.clock = newClock(s.onClockJump)
	rt.store = observedStore{Store: st, metrics: m, clock: rt.clock}
	rt.fleet = &fleet{self: rt.cfg.Node}
	rt.refresh = s.refreshTopic
	rt.nurse = newNurse(log, m, func(who string) { s.sick.Store(&who) })
	rt.keeper = newKeeper(rt.store, log, store.Session{
		Node: rt.cfg.Node, Start: store.NewToken(), TTL: rt.cfg.LeaseTTL, Addr: rt.cfg.Addr,
	})
	rt.keeper.onLost = func() { s.broadcast(&leaseLost{}) }
	rt.keeper.onBack = func() {
		s.setAbsent(false)
		s.broadcast(&leaseBack{})
	}
	rt.keeper.onAbsent = func() { s.setAbsent(true) }
	return s
}

// setAbsent has the others take the shards of a node that cannot reach the store,
// though they see it, or lets it own shards again.
func (s *System) setAbsent(absent bool) {
	if err := s.fleet.setAbsent(absent); err != nil {
		s.log.Warn("not announced whether this node can own shards", "err", err)
	}
}

// Join makes this node one of a fleet. It is called before Start. The fleet knows
// this node by the name that it has here.
func (s *System) Join(f Fleet, p Peers) { s.fleet.source, s.fleet.peers = f, p }

// Start opens the node's session and the topics that have tasks. It fails when
// the store cannot be reached.
func (s *System) Start(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	s.keeper.start()
	s.pool = newPool()
	s.wheel = timer.New(timer.Config{Now: s.clock.Now, Logger: s.log})
	s.engine = newEngine(s.log)
	if err := s.run(ctx); err != nil {
		return err
	}
	s.startRefresh()
	return nil
}

// enter learns the store's clock and opens the session.
func (s *System) enter(ctx context.Context) error {
	if err := s.readClock(ctx); err != nil {
		return fmt.Errorf("read the store's clock: %w", err)
	}
	if err := s.keeper.open(ctx); err != nil {
		return fmt.Errorf("open the session of node %q: %w", s.cfg.Node, err)
	}
	s.started = time.Now()
	s.fleet.update()
	return nil
}

func newEngine(log *slog.Logger) *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(quietHandler{log.Handler()})
	}))
}

// run starts the actors in the engine, on the pool and the wheel.
func (s *System) run(ctx context.Context) error {
	s.root = s.engine.Root
	s.supervisor = s.root.Spawn(s.props(func() actor.Actor {
		return &supervisor{runtime: s.runtime, topics: make(map[string]*topicRef)}
	}))
	s.running.Store(true)
	if err := s.openActive(ctx); err != nil {
		return fmt.Errorf("open topics: %w", err)
	}
	return nil
}

// openActive opens the topics that have tasks in shards of this node; the others
// open on first use.
func (s *System) openActive(ctx context.Context) error {
	topics, err := s.store.ListTopics(ctx)
	if err != nil {
		return err
	}
	var ours []store.Shard
	var of []*store.Topic
	for i := range topics {
		if _, open := s.topics.Load(topics[i].Name); open {
			continue
		}
		for _, shard := range shardsOf(&topics[i]) {
			if s.fleet.owns(shard) {
				ours, of = append(ours, shard), append(of, &topics[i])
			}
		}
	}
	stats, err := s.statsOf(ctx, ours)
	for i, st := range stats {
		if st.Pending+st.Running > 0 {
			s.open(ctx, *of[i])
		}
	}
	return err
}

// Drain refuses new work, tells subscriptions to go, and waits until what they
// hold is settled or ctx ends. Settlements are taken all the while.
func (s *System) Drain(ctx context.Context) {
	if s.stopping.Swap(true) || !s.running.Load() {
		return
	}
	if s.fleet.source != nil {
		// The shards are handed over now, not when the last worker is done.
		if err := s.fleet.setDrained(true); err != nil {
			s.log.Warn("draining not announced", "err", err)
		}
		s.fleet.update()
		s.broadcast(&viewChanged{})
	}
	grace := time.Duration(0)
	if deadline, ok := ctx.Deadline(); ok {
		grace = time.Until(deadline)
	}
	var waits []chan struct{}
	s.eachTopic(func(ref *topicRef) {
		done := make(chan struct{})
		waits = append(waits, done)
		s.send(ref.pid, &drainTopic{grace: grace, done: done})
	})
	awaitAll(ctx, waits)
}

// Stop drains, finishes store calls, releases the shards and stops everything
// the System started. What ctx cuts short is left to the leases and holds.
func (s *System) Stop(ctx context.Context) error {
	s.Drain(ctx)
	if !s.running.Swap(false) {
		return nil
	}
	s.stopRefresh()
	s.releaseShards(ctx)
	s.end()
	s.engine.Shutdown()
	return ctx.Err()
}

// end stops the actors and everything under them.
func (s *System) end() {
	s.root.PoisonFuture(s.supervisor).Wait()
	s.keeper.close()
	s.nurse.close()
	s.wheel.Close()
	s.pool.close()
}

func (s *System) releaseShards(ctx context.Context) {
	var waits []chan struct{}
	s.eachTopic(func(ref *topicRef) {
		for _, pid := range ref.shards() {
			done := make(chan struct{})
			waits = append(waits, done)
			s.send(pid, &releaseShard{done: done})
		}
	})
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
func (s *System) Ready() error {
	switch {
	case !s.running.Load():
		return &Error{Kind: Unavailable, Reason: "STARTING", Message: "the node is not running"}
	case s.stopping.Load():
		return errDraining()
	case s.keeper.err() != nil:
		return failure(s.keeper.err())
	}
	if who := s.sick.Load(); who != nil {
		return &Error{Kind: Unavailable, Reason: "ACTOR_FAILING", Message: "an actor fails without end: " + *who}
	}
	return nil
}

// Describe says what the node is and what is wrong with it.
func (s *System) Describe(ctx context.Context) (ServerStatus, error) {
	info, err := s.store.Info(ctx)
	if err != nil {
		return ServerStatus{}, failure(err)
	}
	if err := s.readClock(ctx); err != nil {
		return ServerStatus{}, failure(err)
	}
	status := ServerStatus{
		Node:       s.cfg.Node,
		Store:      info,
		Warnings:   info.Warnings,
		StoreNow:   s.clock.millis(),
		Uptime:     time.Since(s.started),
		Limits:     s.cfg.Limits,
		Visibility: s.cfg.Topic.Visibility,
	}
	if off := time.Until(s.clock.Now()); off.Abs() > clockJump {
		status.Warnings = append(status.Warnings, fmt.Sprintf("the store's clock is %v off this node's", off.Round(time.Millisecond)))
	}
	return status, nil
}

func (s *System) readClock(ctx context.Context) error {
	sent := time.Now()
	now, err := s.store.Clock(ctx)
	if err != nil {
		return err
	}
	s.clock.observe(sent, time.Now(), now)
	return nil
}

// onClockJump is called by whichever goroutine saw the store's clock step.
func (s *System) onClockJump(by time.Duration) {
	s.metrics.clockJumps.Inc()
	s.log.Warn("store clock jumped", "by", by)
	if s.running.Load() {
		s.wheel.Reset()
		s.broadcast(&clockJumped{})
	}
}

func (s *System) eachTopic(do func(*topicRef)) {
	s.topics.Range(func(_, ref any) bool {
		do(ref.(*topicRef))
		return true
	})
}

// broadcast tells every topic of a change that the runtime knows already.
func (s *System) broadcast(m any) {
	if s.running.Load() {
		s.send(s.supervisor, &tellTopics{m})
	}
}

// serving returns the error for new work on a node that takes none.
func (s *System) serving() *Error {
	switch {
	case s.stopping.Load():
		return errDraining()
	case !s.running.Load():
		return &Error{Kind: Unavailable, Reason: "STARTING", Message: "the node is not running", RetryAfter: retrySoon}
	}
	return nil
}

// topic returns an open topic. An unknown one is created when create is set and
// the configuration allows it.
func (s *System) topic(ctx context.Context, name string, create bool) (*topicRef, *Error) {
	if ref, ok := s.topics.Load(name); ok {
		return ref.(*topicRef), nil
	}
	if err := checkTopicName("topic", name); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.store.GetTopic(ctx, name)
	if errors.Is(err, store.ErrTopicNotFound) && create && !s.cfg.NoAutoCreate {
		t, err = s.create(ctx, name)
	}
	if errors.Is(err, store.ErrTopicNotFound) {
		return nil, errNoTopic(name)
	}
	if err != nil {
		return nil, storeError(err)
	}
	return s.openLocked(ctx, t)
}

func (s *System) create(ctx context.Context, name string) (store.Topic, error) {
	created, err := s.store.PutTopic(ctx, s.newTopic(name))
	if errors.Is(err, store.ErrTopicExists) {
		return s.store.GetTopic(ctx, name)
	}
	return created, err
}

// newTopic is a topic as the node's configuration wants it, different from all others of
// its name that were before.
func (s *System) newTopic(name string) store.Topic {
	t := s.cfg.Topic
	t.Name, t.Life = name, rand.Uint64()
	return t
}

func (s *System) open(ctx context.Context, t store.Topic) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.openLocked(ctx, t) // what is not opened now is found by discover
}

func (s *System) openLocked(ctx context.Context, t store.Topic) (*topicRef, *Error) {
	if err := s.serving(); err != nil {
		return nil, err
	}
	if ref, ok := s.topics.Load(t.Name); ok {
		return ref.(*topicRef), nil
	}
	if err := s.seal(ctx, &t); err != nil {
		return nil, storeError(err)
	}
	reply := make(chan *topicRef, 1)
	s.send(s.supervisor, &openTopic{topic: t, reply: reply})
	ref := <-reply
	<-ref.ready // what is sent to a shard before that is lost
	s.topics.Store(t.Name, ref)
	ref.reachable.Store(true)
	for _, shard := range shardsOf(&t) {
		s.place(ref, shard.N)
	}
	s.turns.add(ref)
	return ref, nil
}

// quietHandler passes the actor library's log on, one level lower: what matters
// of it we log ourselves.
type quietHandler struct{ slog.Handler }

func (h quietHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelError && h.Handler.Enabled(ctx, slog.LevelDebug)
}

func (h quietHandler) Handle(ctx context.Context, r slog.Record) error {
	r.Level = slog.LevelDebug
	return h.Handler.Handle(ctx, r)
}

func (h quietHandler) WithAttrs(a []slog.Attr) slog.Handler {
	return quietHandler{h.Handler.WithAttrs(a)}
}
func (h quietHandler) WithGroup(name string) slog.Handler {
	return quietHandler{h.Handler.WithGroup(name)}
}
