package shard

import (
	"math"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/ddq-io/ddq/actors/agenda"
	"github.com/ddq-io/ddq/actors/cells"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/runtime"
	"github.com/ddq-io/ddq/actors/shard/outbox"
	"github.com/ddq-io/ddq/store"
)

const spareTime = 2 * time.Second // see agenda.Config

// Actor is the actor of one shard: what is due soon, what is ready, what is held, and the
// store calls about it. It is a front door: it hands each message to the part whose it is, and
// then sends what the parts gathered. It owns the goroutines of its calls, all gone
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
	doze  *Doze  // see Slot
	inbox *Inbox // the same

	adder     adder
	holder    holder
	settler   settler
	recoverer recoverer
	loader    loader
	orderer   orderer
	notifier  notifier
	claimer   claimer
	cells     cellKeeper
	outbox    outboxPart
	batching  []batchingPart // in the order in which their batches are flushed

	holds   holdRegistry
	permits permitCalls
}

// New returns the actor of a shard; saved is what the incarnation before it left.
func New(rt *runtime.Runtime, id store.Shard, ref *Topic, at Slot, saved *Saved) *Actor {
	s := &Actor{saved: saved, doze: at.Doze, inbox: at.Inbox, shardState: newShardState(rt, id, ref, at.Clock)}
	s.actor, s.report = s, newTopicReport(id.N, s.tellTopic)
	s.batching = []batchingPart{&s.adder, &s.holder, &s.settler, &s.recoverer, &s.cells, &s.outbox}
	claim := &s.claimer
	s.claimer = newClaimer(&s.shardState, claimHooks{parts: s.batching, granted: s.onGranted, load: s.load})
	s.holds = holdRegistry{shardState: &s.shardState, claim: claim}
	s.permits = permitCalls{shardState: &s.shardState, store: rt.Store}
	s.orderer = newOrderer(claim, &s.loader.wheel)
	s.loader = newLoader(claim, &s.orderer)
	s.notifier = newNotifier(claim, &s.loader, &s.holds, s.readAnew)
	s.settler = newSettler(claim, &s.notifier, &s.permits, &s.holds, s.holder.waiting)
	s.holder = newHolder(claim, &s.settler, &s.loader, &s.permits, &s.holds)
	s.adder = newAdder(claim, &s.holder, &s.settler, &s.notifier, &s.holds)
	s.recoverer = newRecoverer(claim, &s.loader, &s.notifier, &s.permits, &s.holds)
	s.cells = newCellKeeper(claim, &s.notifier)
	s.outbox = newOutboxPart(claim)
	s.tasks = agenda.NewShard(agenda.Config{
		Horizon: ref.Settings.Horizon, Wheel: ref.Settings.WheelBudget, Ready: ref.Settings.ReadyBudget, Page: ref.Settings.Knobs.WithDefaults().LoadPage, Spare: spareTime,
	}, &s.loader.wheel)
	return s
}

// onGranted begins to count anew what counts from a claim on.
func (s *Actor) onGranted(seq int64, server uint64) {
	s.recoverer.failedWalks = 0
	s.notifier.seqs.Restart(seq, server)
}

// load reads what the store has of a shard that this node owns now.
func (s *Actor) load() {
	s.loader.load()
	s.recoverer.watch()
	s.cells.own()
	s.outbox.Look()
}

// readAnew is load of a shard that is this node's already: what reads of it have in flight does
// not count.
func (s *Actor) readAnew() {
	s.recoverer.discard()
	s.cells.discard()
	s.inbox.forget()
	s.load()
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
		s.giveRoomBack()
		s.stop()
	case *LoadTick:
		s.Follow()
		s.claimer.retry() // nothing else would try again after an error
		s.loader.refresh()
		s.cells.tick()
	case *flushBatches:
		s.flush()
	case *runtime.CallDone:
		s.hand(m.Result, m.By == s.actor)
	case *Configured:
		s.topic = &m.Topic
		s.loader.setLimits()
		s.cells.configured()
	case *DescribeShard:
		d := s.describe()
		if m.Due && s.claimer.owned() {
			d.DueSoon = fleet.CountDueSoon(s.Now(), s.tasks.KnownUntil(), &s.loader.wheel)
		}
		m.Reply <- d
	default:
		s.hand(m, true)
	}
	s.finish()
}

// hand hands a message, or what a store call came to, to the part whose it is. own is false of
// a call that an earlier incarnation made: only what it changed in the store counts then.
func (s *Actor) hand(m any, own bool) {
	switch m.(type) {
	case *AddTasks, *added:
		s.adder.receive(m, own)
	case *HoldTasks, *HeldElsewhere, *CancelHolds, *Forget, *sendDue, *holdsDone:
		s.holder.receive(m, own)
	case *SettleHolds, *acksDone, *nextsDone, *nacksDone, *extendsDone, *checkpointsDone:
		s.settler.receive(m, own)
	case *WatchTick, *deadlinesDue, *recovered, *runningFound, *swept:
		s.recoverer.receive(m, own)
	case *ClockJumped: // what waits for a moment of before may wait for long
		s.loader.receive(m, own)
		s.cells.look()
		s.outbox.Retry()
	case *slotDue, *exactDue, *crowdsDue, *reload, *windowLoaded, *laneLoaded, *lanesFound:
		s.loader.receive(m, own)
	case *orderLook, *orderFound:
		s.orderer.receive(m, own)
	case *cellsDue, *lookAgain, *CellsChanged, *ParcelsHeard, *cells.Runs, *cells.Outcome:
		s.cells.receive(m, own)
	case *PendingChanged, *PendingGone, *PendingElsewhere, *EndedElsewhere, *GoneElsewhere, *WaitedElsewhere, *SeqSeen:
		s.notifier.receive(m)
		s.cells.notice(m)
		s.outbox.notice(m)
	case *Placed, *HandShard, *YieldShard, *LeaseLost, *LeaseBack, *ReleaseShard, *claimed, *givenUp:
		s.claimer.receive(m, own)
	default:
		s.outbox.Receive(m, own)
	}
}

// finish ends the handling of a message: it sends what the parts gathered.
func (s *Actor) finish() {
	s.loader.finish()
	s.orderer.countBehind()
	s.reportDoze()
	s.holder.deliver()
	s.report.send(s.tasks.TakeReady())
	s.claimer.advance()
}

// reportDoze says until when ticks are of no use. Queues that were empty were not shifted
// meanwhile.
func (s *Actor) reportDoze() {
	if s.doze.set(s.dozesUntil(), &s.notifier.seqs, s.cells.known()) {
		s.Follow()
	}
}

// dozesUntil is 0 for a shard that is awake. One that is another node's dozes for good; one
// that is this node's does while there is nothing to deliver, to take back or to read, and the
// store has said nothing else.
func (s *Actor) dozesUntil() store.Millis {
	if s.claimer.elsewhere() {
		return math.MaxInt64
	}
	until, dozes := s.tasks.Doze()
	if !dozes || s.notifier.doubt || s.holds.len() > 0 || !s.claimer.inherited() || !s.claimer.idle() {
		return 0
	}
	return min(until, s.cells.dozesUntil(), s.outbox.DozesUntil())
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
	s.loader.wheel.Open()
	s.loader.setLimits()
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

// outboxPart is the outbox as a part of the actor.
type outboxPart struct{ *outbox.Outbox }

func newOutboxPart(claim *claimer) outboxPart {
	b := claim.shardState
	return outboxPart{outbox.New(outbox.Host{
		Runtime: b.Runtime, Timers: &b.Timers, ID: b.id, Knobs: b.ref.Settings.Knobs, Topic: func() *store.Topic { return b.topic },
		Owned: claim.owned, Fence: claim.fence, NoteError: claim.noteError, Run: b.calls.Run, Done: b.done, Post: b.post, Flush: b.scheduleFlush,
	})}
}

func (o *outboxPart) flush()      { o.Flush() }
func (o *outboxPart) idle() bool  { return o.Idle() }
func (o *outboxPart) fenced() int { return o.Fenced() }
func (o *outboxPart) lose()       { o.Lose() }
func (o *outboxPart) stop()       { o.Stop() }

// notice looks at what is another part's for what it means for the outbox.
func (o *outboxPart) notice(message any) {
	switch m := message.(type) {
	case *SeqSeen:
		if m.Parcels > 0 {
			o.Look()
		}
	case *EndedElsewhere:
		if len(m.Holds) == 0 { // another node sent a message, or changed an entity
			o.Look()
		}
	}
}
