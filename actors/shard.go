package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/ddq-io/ddq/actors/agenda"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/runtime"
	"github.com/ddq-io/ddq/store"
)

const (
	storeRetry = time.Second     // pause before asking a failing store again
	watchSlack = time.Second     // how late a timer may be before the watchdog counts it
	spareTime  = 2 * time.Second // see agenda.Config
)

// shard is the actor of one shard: what is due soon, what is ready, what is held, and the
// store calls about it. It is a front door: Receive hands each message to the part whose it
// is, and then sends what the parts gathered. It owns the goroutines of its calls, all gone
// when it has stopped.
//
// Invariants:
//   - a task is in holds only under the token of a hold that the store granted
//   - nothing is held, recovered or loaded unless the claim is owned
//
// On nodes that do not own the shard it adds and settles all the same, tells the
// owner, and keeps the holds of this node's subscriptions, for their credit only.
type shard struct {
	shardState
	saved *savedShard // what the incarnation before this one left

	adder     adder
	holder    holder
	settler   settler
	recoverer recoverer
	loader    loader
	orderer   orderer
	notifier  notifier
	claimer   claimer
	batching  []shardPart // in the order in which their batches are flushed

	holds   holdRegistry
	permits permitCalls
}

// shardPart is a part of a shard that batches its store calls.
type shardPart interface {
	flush()      // starts the calls that may start
	idle() bool  // no call runs or waits that somebody depends on
	fenced() int // calls in flight under the fence of the claim
	lose()       // the claim is over: gives back what waits for a call under it
	stop()       // the shard stops: answers what waits for a call
}

func newShard(rt *runtime.Runtime, id store.Shard, ref *shardTopic, at shardSlot, saved *savedShard) *shard {
	s := &shard{saved: saved, shardState: newShardState(rt, id, ref, at.clock)}
	s.actor, s.claim, s.report = s, &s.claimer, newTopicReport(&s.shardState)
	s.adder = newAdder(s)
	s.holder = newHolder(s)
	s.settler = newSettler(s)
	s.recoverer = newRecoverer(s)
	s.loader = newLoader(s)
	s.orderer = newOrderer(s)
	s.notifier = newNotifier(s)
	s.batching = []shardPart{&s.adder, &s.holder, &s.settler, &s.recoverer}
	s.claimer = newClaimer(s, at.dozing)
	s.holds = holdRegistry{shardState: &s.shardState}
	s.permits = permitCalls{shardState: &s.shardState, store: rt.Store}
	s.tasks = agenda.NewShard(agenda.Config{
		Horizon: ref.settings.Horizon, Wheel: ref.settings.WheelBudget, Ready: ref.settings.ReadyBudget, Page: loadPage, Spare: spareTime,
	}, &s.loader.wheel)
	return s
}

// Receive handles one message; it never waits.
func (s *shard) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		s.start(c)
	case *actor.Restarting:
		s.save()
		s.stop()
		s.refundRest()
	case *actor.Stopping:
		s.stop()
	case *addTasks:
		s.adder.add(m.items)
	case *holdTasks:
		s.holder.hold(m)
	case *heldElsewhere:
		s.holder.takeOver(m)
	case *cancelHolds:
		s.holder.passCancels(m.holds)
	case *settleHolds:
		s.settler.settle(m)
	case *deadlinesDue:
		s.recoverer.onDeadlines(m.ms)
	case *watchTick:
		s.recoverer.watch()
	case *slotDue, *reload, *clockJumped:
		s.loader.receive(m)
	case *orderLook:
		s.orderer.onLook(m.ms)
	case *pendingChanged, *pendingGone, *pendingElsewhere, *endedElsewhere, *waitedElsewhere, *seqSeen:
		s.notifier.receive(m)
	case *placed, *handShard, *leaseLost, *leaseBack, *releaseShard:
		s.claimer.receive(m)
	case *loadTick:
		s.follow()
		s.claimer.retry() // nothing else would try again after an error
		s.loader.refresh()
	case *flushBatches:
		s.flush()
	case *runtime.CallDone:
		s.onCall(m)
	case *configured:
		s.topic = &m.topic
	case *describeShard:
		m.reply <- s.describe()
	case *forget:
		m.confirm()
	}
	s.finish()
}

// finish ends the handling of a message: it sends what the parts gathered.
func (s *shard) finish() {
	s.loader.finish()
	s.orderer.countBehind()
	s.claimer.reportDozing()
	s.holder.deliver()
	s.report.send()
	s.claimer.advance()
}

// flush starts the store calls that may start. Parts ask for it with scheduleFlush, so that
// what waits in the mailbox joins the batches first.
func (s *shard) flush() {
	s.flushScheduled = false
	for _, p := range s.batching {
		p.flush()
	}
}

func (s *shard) start(c actor.Context) {
	s.self, s.parent = c.Self(), c.Parent()
	s.loader.wheel.open()
	s.holds.open()
	s.Metrics.Shards.Inc()
	s.restore()
	if s.ref.reachable(s.id.N) { // else it is placed once it is
		s.claimer.retry()
	}
}

// stop ends everything the shard owns. What waits for a store call fails; what
// is in one is abandoned, and its callers learn that the outcome is unknown.
func (s *shard) stop() {
	for _, p := range s.batching {
		p.stop()
	}
	s.calls.Close()
	s.tasks.Forget()
	s.loader.stop()
	s.holds.close()
	s.orderer.countBehind()
	s.claimer.stop()
	s.Metrics.Shards.Dec()
	s.tellTopic(&shardLost{shard: s.id.N, ended: true})
}

// describe is the shard as its owner sees it.
func (s *shard) describe() fleet.OwnedShard {
	d := fleet.OwnedShard{Shard: s.id, Epoch: s.claimer.fence().Epoch, Wheel: s.loader.wheel.Len(), Ready: s.tasks.ReadyLen(), Held: s.holds.len()}
	if !s.claimer.owned() {
		d.Epoch = 0
	}
	return d
}

// Fail answers that nothing is known of the shard.
func (m *describeShard) Fail(*problem.Error) {
	select {
	case m.reply <- fleet.OwnedShard{}:
	default: // it was answered before the panic
	}
}
