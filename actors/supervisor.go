package actors

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/cenkalti/backoff/v5"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer"
)

// runtime is what the actors of a node share. All of it is safe for concurrent use.
type runtime struct {
	cfg     Config
	store   store.Store
	clock   *clock
	wheel   *timer.Wheel
	keeper  *keeper
	fleet   *fleet
	waiters *waiters
	metrics *metrics
	log     *slog.Logger
	root    *actor.RootContext
	nurse   *nurse
	pool    *pool
	random  func() float64 // in [0, 1)

	used atomic.Int64 // when a topic was last used, in Unix nanoseconds

	// refresh reads an open topic's configuration again.
	refresh func(ctx context.Context, topic string) error
}

// use takes in that a topic is in use now.
func (rt *runtime) use(ref *topicRef) {
	now := time.Now().UnixNano()
	ref.active.Store(now)
	rt.used.Store(now)
}

func (rt *runtime) send(to *actor.PID, m any) { rt.root.Send(to, m) }

// props makes an actor that is restarted with backoff for ever.
func (rt *runtime) props(producer actor.Producer) *actor.Props {
	return actor.PropsFromProducer(producer,
		actor.WithDispatcher(rt.pool),
		actor.WithMailbox(newMailbox),
		actor.WithSupervisor(rt.nurse),
		actor.WithReceiverMiddleware(rt.nurse.witness))
}

// supervisor is the root actor: the parent of the topics.
type supervisor struct {
	*runtime
	topics map[string]*topicRef
	opened int // so that a topic that is opened anew has names of its own
}

// Receive handles one message; it never waits.
func (s *supervisor) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *openTopic:
		m.reply <- s.open(c, m.topic)
	case *closeTopic:
		s.close(c, m)
	case *tellTopics:
		for _, ref := range inOrder(s.topics, cmp.Compare) {
			s.send(ref.pid, m.message)
		}
	}
}

func (s *supervisor) open(c actor.Context, topic store.Topic) *topicRef {
	if ref := s.topics[topic.Name]; ref != nil {
		return ref
	}
	ref := &topicRef{ready: make(chan struct{}), turn: s.opened % beats}
	ref.config.Store(&topic)
	s.opened++
	name := fmt.Sprintf("%s-%d", topic.Name, s.opened)
	ref.pid = actor.NewPID(c.Self().Address, c.Self().Id+"/"+name)
	shards := layoutOf(ref.pid, &topic, nil)
	ref.layout.Store(&shards)
	s.topics[topic.Name] = ref
	props := s.props(func() actor.Actor { return newTopicActor(s.runtime, ref) })
	if _, err := c.SpawnNamed(props, name); err != nil {
		panic(fmt.Sprintf("spawn topic %s: %v", topic.Name, err)) // one per name: a bug
	}
	return ref
}

func (s *supervisor) close(c actor.Context, m *closeTopic) {
	ref := s.topics[m.name]
	delete(s.topics, m.name)
	if ref == nil {
		close(m.done)
		return
	}
	stopped := c.PoisonFuture(ref.pid)
	s.nurse.wg.Go(func() {
		defer close(m.done)
		stopped.Wait()
	})
}

const (
	giveUpAfter  = 20 // panics of one actor
	giveUpWindow = time.Minute
)

// nurse is the failure strategy of every actor: restart with backoff for ever.
// An actor that panics without end makes the node not ready; it goes on trying.
//
// It owns a goroutine per restart under way; close waits for them.
type nurse struct {
	log     *slog.Logger
	metrics *metrics
	onSick  func(who string)

	mu   sync.Mutex
	wg   sync.WaitGroup
	ill  map[string]*illness
	done chan struct{}
}

// illness is the recent history of one actor's panics.
type illness struct {
	pause *backoff.ExponentialBackOff
	since time.Time
	count int
}

func newNurse(log *slog.Logger, m *metrics, onSick func(who string)) *nurse {
	return &nurse{log: log, metrics: m, onSick: onSick, ill: make(map[string]*illness), done: make(chan struct{})}
}

// witness is middleware: it logs a panic with its stack, fails the callers that
// wait on the message, and lets the panic go on to the strategy.
func (n *nurse) witness(next actor.ReceiverFunc) actor.ReceiverFunc {
	return func(c actor.ReceiverContext, env *actor.MessageEnvelope) {
		defer func() {
			if reason := recover(); reason != nil {
				n.log.Error("actor panicked", "actor", c.Self().Id, "err", reason, "stack", string(debug.Stack()))
				if m, ok := env.Message.(failer); ok {
					m.fail(errInternal(fmt.Errorf("panic: %v", reason)))
				}
				panic(reason)
			}
		}()
		next(c, env)
	}
}

// HandleFailure restarts the child after a pause that grows while it keeps failing.
func (n *nurse) HandleFailure(_ *actor.ActorSystem, parent actor.Supervisor, child *actor.PID, _ *actor.RestartStatistics, _, _ any) {
	n.metrics.restarts.Inc()
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

func (n *nurse) diagnose(who string) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := n.ill[who]
	if i == nil || time.Since(i.since) > giveUpWindow {
		i = &illness{pause: backoff.NewExponentialBackOff(), since: time.Now()}
		i.pause.InitialInterval, i.pause.MaxInterval = 10*time.Millisecond, 5*time.Second
		n.ill[who] = i
	}
	if i.count++; i.count == giveUpAfter {
		n.onSick(who)
	}
	return i.pause.NextBackOff()
}

func (n *nurse) close() {
	close(n.done)
	n.wg.Wait()
}
