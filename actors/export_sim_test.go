package actors

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/ddq-io/ddq/actors/engine"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/runtime"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer"
)

// What a simulation uses of a System's insides, all of it: how it is put together without
// goroutines and tickers of its own, and what those would do.

// SimNode is a System that does nothing by itself.
type SimNode struct{ *Node }

// SimProbe sees every message of a node's actors before it is handled.
type SimProbe func(who actor.Actor, id string, message any)

// SimSeams are what a System of a simulation is given in place of its own.
type SimSeams struct {
	Engine *actor.ActorSystem
	Take   func(f func(), mailbox bool) // instead of running it
	Turn   func()                       // returns when the caller may send a message to an actor
	Random func() float64
	Probe  SimProbe
	Fleet  fleet.Fleet
	Peers  fleet.Peers
}

func NewSimEngine() *actor.ActorSystem {
	return engine.New(slog.New(slog.DiscardHandler), runtime.FailLate)
}

func NewSimNode(cfg Config, st store.Store, seams SimSeams) SimNode {
	s := New(cfg, st, slog.New(slog.DiscardHandler), nil)
	var mu sync.Mutex
	random := func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return seams.Random()
	}
	s.rt.Random, s.rt.Restarts.Random = random, random
	s.Join(seams.Fleet, seams.Peers)
	s.rt.Pool = engine.NewPool()
	s.rt.Pool.Taker = seams.Take
	s.rt.Restarts.Probe = seams.Probe
	s.engine = inTurn(seams.Engine, seams.Turn)
	s.rt.Wheel = timer.NewManual(s.rt.Clock.Now)
	return SimNode{s}
}

// inTurn is an engine in which nobody sends a message before it is their turn.
func inTurn(e *actor.ActorSystem, turn func()) *actor.ActorSystem {
	own := *e
	own.Root = e.Root.Copy().WithSenderMiddleware(func(next actor.SenderFunc) actor.SenderFunc {
		return func(c actor.SenderContext, to *actor.PID, m *actor.MessageEnvelope) {
			turn()
			next(c, to, m)
		}
	})
	return &own
}

// Begin is Start.
func (s SimNode) Begin(ctx context.Context, topics ...string) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	if err := s.run(ctx); err != nil {
		return err
	}
	for _, name := range topics { // opened under a lock, for which the loop could not wait later
		if _, err := s.Topics().Open(ctx, name, false); err != nil {
			return err
		}
	}
	return nil
}

// Abandon is Stop of a node that died.
func (s SimNode) Abandon() {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	s.Drain(gone)
	if s.rt.Running.Swap(false) {
		s.end()
	}
}

// What tickers do.

func (s SimNode) Renew(ctx context.Context) { s.rt.Keeper.Renew(ctx) }

// Looks reports whether somebody reads or changes what a topic is, or waits for that: it may be a link, with
// tasks of shards that are new to the node.
func (s SimNode) Looks() bool {
	locks := &s.topics.locks
	locks.mu.Lock()
	defer locks.mu.Unlock()
	return len(locks.locks) > 0
}

func (s SimNode) FollowView() {
	s.rt.Fleet.Update()
	s.Peer().Resumed()
	s.topics.broadcast(&viewChanged{})
}

func (s SimNode) LoadNow() { s.tickAll(s.Topics().TickLoads) }

func (s SimNode) WatchNow() { s.tickAll(s.Topics().TickWatches) }

func (s SimNode) tickAll(tick func(turn int)) {
	for turn := range Beats {
		tick(turn)
	}
}

// Due is how long it is until the wheel has something due.
func (s SimNode) Due() (in time.Duration, any bool) {
	ms, ok := s.rt.Wheel.Next()
	if !ok {
		return 0, false
	}
	return store.Millis(ms).Time().Sub(s.rt.Clock.Now()), true
}

func (s SimNode) Fire() { s.rt.Wheel.Fire() }
