package engine

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/cenkalti/backoff/v5"
)

const (
	giveUpAfter  = 20 // panics of one actor
	giveUpWindow = time.Minute
)

// RestartStrategy is the failure strategy of every actor: restart with backoff for ever.
// An actor that panics without end makes the node not ready; it goes on trying.
//
// It owns a goroutine per restart under way; close waits for them.
type RestartStrategy struct {
	log       *slog.Logger
	onRestart func()
	onSick    func(who string)
	onLost    func(message any, err error)

	// probe, if set, sees every message before it is handled. A simulation panics in it.
	Probe  func(who actor.Actor, id string, message any)
	Random func() float64 // in [0, 1)

	mu   sync.Mutex
	wg   sync.WaitGroup
	ill  map[string]*failures
	done chan struct{}
}

// failures is the recent history of one actor's panics.
type failures struct {
	pause *backoff.ExponentialBackOff
	since time.Time
	count int
}

// NewRestartStrategy returns a strategy that calls onRestart before each restart, onSick for an
// actor that panics without end, and onLost for each message whose handling panicked.
func NewRestartStrategy(log *slog.Logger, onRestart func(), onSick func(who string), onLost func(message any, err error)) *RestartStrategy {
	return &RestartStrategy{
		log: log, onRestart: onRestart, onSick: onSick, onLost: onLost, Random: rand.Float64,
		ill: make(map[string]*failures), done: make(chan struct{}),
	}
}

// LogPanics is middleware: it logs a panic with its stack, fails the callers that
// wait on the message, and lets the panic go on to the strategy.
func (n *RestartStrategy) LogPanics(next actor.ReceiverFunc) actor.ReceiverFunc {
	return func(c actor.ReceiverContext, env *actor.MessageEnvelope) {
		defer func() {
			if reason := recover(); reason != nil {
				n.log.Error("actor panicked", "actor", c.Self().Id, "err", reason, "stack", string(debug.Stack()))
				n.onLost(env.Message, fmt.Errorf("panic: %v", reason))
				panic(reason)
			}
		}()
		if n.Probe != nil {
			n.Probe(c.Actor(), c.Self().Id, env.Message)
		}
		next(c, env)
	}
}

// HandleFailure restarts the child after a pause that grows while it keeps failing.
func (n *RestartStrategy) HandleFailure(_ *actor.ActorSystem, parent actor.Supervisor, child *actor.PID, _ *actor.RestartStatistics, _, _ any) {
	n.onRestart()
	pause := n.diagnose(child.Id)
	n.wg.Go(func() {
		t := time.NewTimer(pause)
		defer t.Stop()
		select {
		case <-t.C:
		case <-n.done:
		}
		parent.RestartChildren(child)
	})
}

func (n *RestartStrategy) diagnose(who string) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := n.ill[who]
	if i == nil || time.Since(i.since) > giveUpWindow {
		i = &failures{pause: backoff.NewExponentialBackOff(), since: time.Now()}
		i.pause.InitialInterval, i.pause.MaxInterval, i.pause.RandomizationFactor = 10*time.Millisecond, 5*time.Second, 0
		n.ill[who] = i
	}
	if i.count++; i.count == giveUpAfter {
		n.onSick(who)
	}
	return time.Duration(float64(i.pause.NextBackOff()) * (0.5 + n.Random()))
}

// Run runs f on a goroutine that close waits for.
func (n *RestartStrategy) Run(f func()) { n.wg.Go(f) }

// Close ends pauses before restarts, and waits for them.
func (n *RestartStrategy) Close() {
	close(n.done)
	n.wg.Wait()
}
