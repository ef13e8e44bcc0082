package engine

import (
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/cenkalti/backoff/v5"
)

const (
	giveUpAfter  = 20          // panics of one actor
	giveUpWindow = time.Minute // longer than any pause before a restart
)

// RestartStrategy is the failure strategy of every actor: restart with backoff for ever.
// Failing names an actor that panics without end.
//
// It owns a goroutine per restart that is pending; Close waits for them.
type RestartStrategy struct {
	log       *slog.Logger
	onRestart func()
	onLost    func(message any, err error)

	// probe, if set, sees every message before it is handled. A simulation panics in it.
	Probe  func(who actor.Actor, id string, message any)
	Random func() float64 // in [0, 1)

	mu       sync.Mutex
	wg       sync.WaitGroup
	failures map[string]*failures // by actor, guarded by mu; those that panicked within giveUpWindow, and maybe others
	done     chan struct{}
}

// failures is the recent history of one actor's panics.
type failures struct {
	pause       *backoff.ExponentialBackOff
	since, last time.Time // the first and the last panic that count
	count       int       // since then
	endless     bool      // it panicked giveUpAfter times within a window, and goes on
}

// NewRestartStrategy returns a strategy that calls onRestart before each restart, and onLost
// for each message whose handling panicked.
func NewRestartStrategy(log *slog.Logger, onRestart func(), onLost func(message any, err error)) *RestartStrategy {
	return &RestartStrategy{
		log: log, onRestart: onRestart, onLost: onLost, Random: rand.Float64,
		failures: make(map[string]*failures), done: make(chan struct{}),
	}
}

// Failing returns the name of an actor that panics without end, empty when there is none. An actor
// that has not panicked for giveUpWindow is no longer failing: what made it panic may pass, as a
// record that another node repairs does.
func (r *RestartStrategy) Failing() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for who, i := range r.failures {
		if i.endless && time.Since(i.last) <= giveUpWindow {
			return who
		}
	}
	return ""
}

// LogPanics is middleware: it logs a panic with its stack, fails the callers that
// wait on the message, and lets the panic go on to the strategy.
func (r *RestartStrategy) LogPanics(next actor.ReceiverFunc) actor.ReceiverFunc {
	return func(c actor.ReceiverContext, env *actor.MessageEnvelope) {
		defer func() {
			if reason := recover(); reason != nil {
				r.log.Error("actor panicked", "actor", c.Self().Id, "err", reason, "stack", string(debug.Stack()))
				r.onLost(env.Message, fmt.Errorf("panic: %v", reason))
				panic(reason)
			}
		}()
		if r.Probe != nil {
			r.Probe(c.Actor(), c.Self().Id, env.Message)
		}
		next(c, env)
	}
}

// HandleFailure restarts the child after a pause that grows while it keeps failing.
func (r *RestartStrategy) HandleFailure(_ *actor.ActorSystem, parent actor.Supervisor, child *actor.PID, _ *actor.RestartStatistics, _, _ any) {
	r.onRestart()
	pause := r.countPanic(child.Id)
	r.wg.Go(func() {
		t := time.NewTimer(pause)
		defer t.Stop()
		select {
		case <-t.C:
		case <-r.done:
		}
		parent.RestartChildren(child)
	})
}

// countPanic counts a panic and returns the pause before the restart.
func (r *RestartStrategy) countPanic(who string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(r.failures, func(_ string, i *failures) bool { return now.Sub(i.last) > giveUpWindow })
	i := r.failures[who]
	if i == nil || !i.endless && now.Sub(i.since) > giveUpWindow {
		i = &failures{pause: backoff.NewExponentialBackOff(), since: now}
		i.pause.InitialInterval, i.pause.MaxInterval, i.pause.RandomizationFactor = 10*time.Millisecond, 5*time.Second, 0
		r.failures[who] = i
	}
	i.last = now
	i.count++
	i.endless = i.endless || i.count >= giveUpAfter
	return time.Duration(float64(i.pause.NextBackOff()) * (0.5 + r.Random()))
}

// Run runs f on a goroutine that Close waits for.
func (r *RestartStrategy) Run(f func()) { r.wg.Go(f) }

// Close ends pauses before restarts, and waits for them.
func (r *RestartStrategy) Close() {
	close(r.done)
	r.wg.Wait()
}
