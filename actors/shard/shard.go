package shard

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/ddq-io/ddq/actors/agenda"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/runtime"
	"github.com/ddq-io/ddq/store"
)

const spareTime = 2 * time.Second // see agenda.Config

// Actor is the actor of one shard: what is due soon, what is ready, what is held, and the
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
type Actor struct {
	shardState
	saved *Saved // what the incarnation before this one left

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

// New returns the actor of a shard; saved is what the incarnation before it left.
func New(rt *runtime.Runtime, id store.Shard, ref *Topic, at Slot, saved *Saved) *Actor {
	s := &Actor{saved: saved, shardState: newShardState(rt, id, ref, at.Clock)}
	s.actor, s.claim, s.report = s, &s.claimer, newTopicReport(&s.shardState)
	s.adder = newAdder(s)
	s.holder = newHolder(s)
	s.settler = newSettler(s)
	s.recoverer = newRecoverer(s)
	s.loader = newLoader(s)
	s.orderer = newOrderer(s)
	s.notifier = newNotifier(s)
	s.batching = []shardPart{&s.adder, &s.holder, &s.settler, &s.recoverer}
	s.claimer = newClaimer(s, at.Dozing)
	s.holds = holdRegistry{shardState: &s.shardState}
	s.permits = permitCalls{shardState: &s.shardState, store: rt.Store}
	s.tasks = agenda.NewShard(agenda.Config{
		Horizon: ref.Settings.Horizon, Wheel: ref.Settings.WheelBudget, Ready: ref.Settings.ReadyBudget, Page: loadPage, Spare: spareTime,
	}, &s.loader.wheel)
	return s
}

// Receive handles one message; it never waits.
func (s *Actor) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		s.start(c)
	case *actor.Restarting:
		s.save()
		s.stop()
		s.refundRest()
	case *actor.Stopping:
		s.stop()
	case *AddTasks:
		s.adder.add(m.Items)
	case *HoldTasks:
		s.holder.hold(m)
	case *HeldElsewhere:
		s.holder.takeOver(m)
	case *sendDue:
		s.holder.onSend(store.Millis(m.ms))
	case *CancelHolds:
		s.holder.passCancels(m.Holds)
	case *SettleHolds:
		s.settler.settle(m)
	case *deadlinesDue:
		s.recoverer.onDeadlines(m.ms)
	case *WatchTick:
		s.recoverer.watch()
	case *slotDue, *exactDue, *crowdsDue, *reload, *ClockJumped:
		s.loader.receive(m)
	case *orderLook:
		s.orderer.onLook(m.ms)
	case *PendingChanged, *PendingGone, *PendingElsewhere, *EndedElsewhere, *WaitedElsewhere, *SeqSeen:
		s.notifier.receive(m)
	case *Placed, *HandShard, *LeaseLost, *LeaseBack, *ReleaseShard:
		s.claimer.receive(m)
	case *LoadTick:
		s.follow()
		s.claimer.retry() // nothing else would try again after an error
		s.loader.refresh()
	case *flushBatches:
		s.flush()
	case *runtime.CallDone:
		s.onCall(m)
	case *Configured:
		s.topic = &m.Topic
		s.loader.setAhead()
	case *DescribeShard:
		m.Reply <- s.describe()
	case *Forget:
		s.holder.giveBackOf(m.Sub)
		m.confirm()
	}
	s.finish()
}

// finish ends the handling of a message: it sends what the parts gathered.
func (s *Actor) finish() {
	s.loader.finish()
	s.orderer.countBehind()
	s.claimer.reportDozing()
	s.holder.deliver()
	s.report.send()
	s.claimer.advance()
}

// flush starts the store calls that may start. Parts ask for it with scheduleFlush, so that
// what waits in the mailbox joins the batches first.
func (s *Actor) flush() {
	s.flushScheduled = false
	for _, p := range s.batching {
		p.flush()
	}
}

func (s *Actor) start(c actor.Context) {
	s.self, s.parent = c.Self(), c.Parent()
	s.loader.wheel.open()
	s.loader.setAhead()
	s.holds.open()
	s.holder.unsent.open()
	s.Metrics.Shards.Inc()
	s.restore()
	if s.ref.Reachable(s.id.N) { // else it is placed once it is
		s.claimer.retry()
	}
}

// stop ends everything the shard owns. What waits for a store call fails; what
// is in one is abandoned, and its callers learn that the outcome is unknown.
func (s *Actor) stop() {
	for _, p := range s.batching {
		p.stop()
	}
	s.calls.Close()
	s.tasks.Forget()
	s.loader.stop()
	s.holds.close()
	s.holder.unsent.close()
	s.orderer.countBehind()
	s.claimer.stop()
	s.Metrics.Shards.Dec()
	s.tellTopic(&Lost{Shard: s.id.N, Ended: true})
}

// describe is the shard as its owner sees it.
func (s *Actor) describe() fleet.OwnedShard {
	d := fleet.OwnedShard{Shard: s.id, Epoch: s.claimer.fence().Epoch, Wheel: s.loader.wheel.Len(), Ready: s.tasks.ReadyLen(), Held: s.holds.len()}
	if !s.claimer.owned() {
		d.Epoch = 0
	}
	return d
}
