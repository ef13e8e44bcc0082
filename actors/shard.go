package actors

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/ddq-io/ddq/actors/agenda"
	"github.com/ddq-io/ddq/actors/dispatch"
	"github.com/ddq-io/ddq/actors/engine"
	"github.com/ddq-io/ddq/actors/ordered"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer"
)

const (
	storeRetry = time.Second     // pause before asking a failing store again
	watchSlack = time.Second     // how late a timer may be before the watchdog counts it
	spareTime  = 2 * time.Second // see agenda.Config
)

// shard is the actor of one owned shard: what is due soon, what is ready, what is
// held, and the store calls about it. It owns the goroutines of its calls, all gone
// when it has stopped.
//
// Invariants:
//   - a pending task inside the window is in due, or in out, not in both
//   - a task is in held only under the token of a hold that the store granted
//   - nothing is held, recovered or loaded unless the claim is owned
//
// On nodes that do not own the shard it adds and settles all the same, tells the
// owner, and keeps the holds of this node's subscriptions, for their credit only.
type shard struct {
	*runtime
	id      store.Shard
	ref     *Topic
	dozing  *atomic.Bool // see place
	primary *Clock       // that of the store's machine that has the shard
	saved   *savedShard  // what the incarnation before this one left
	topic   *store.Topic
	parent  *actor.PID
	self    *actor.PID
	log     *slog.Logger
	calls   *engine.Calls

	claim   agenda.Claim
	stopped chan struct{} // of releaseShard: closed once the claim is released
	seqs    agenda.GapDetector

	tasks      *agenda.Shard // pending
	due        *timer.Queue  // those of them that are not due yet
	reloadFrom *store.Millis // see reloadLater; nil: none is pending
	looks      *timer.Queue  // ordering keys to look at; nil: none
	deadlines  *timer.Queue  // of held
	held       agenda.HoldTable
	acked      agenda.AckLog
	ahead      int64 // ms that primary is ahead of the wheel's clock, as the queues go by
	jumps      int   // of primary that were seen
	rereads    int   // still to come because of them
	counted    int   // of due, in the gauge
	behind     int   // of ordering keys, in theirs

	adds     engine.Batcher[Addition]
	holdNews engine.Batcher[Addition]
	keyed    engine.Batcher[Addition] // with idempotency keys
	holds    engine.Batcher[holdRequest]
	acks     engine.Batcher[settleItem]
	nacks    engine.Batcher[settleItem]
	extends  engine.Batcher[settleItem]
	recovers engine.Batcher[expired]

	flushScheduled     bool // a flushBatches is in the mailbox
	watching, sweeping bool
	sweepAt            string
	failedWalks        int       // of the watchdog, in a row
	warned             time.Time // see warn

	// Gathered while one message is handled, then sent at once.
	outgoing map[*subscriber]*[]heldTask
	last     struct { // of outgoing: where the last task went
		sub   *subscriber
		tasks *[]heldTask
	}
	unused   []agenda.Hold // allocated, see room
	freed    map[int64]int // subscription -> holds ended
	refunds  map[int64]int // subscription -> credit that came to nothing
	counting map[int64]int // of refunds, those that core.count counts

	assigned map[int64]int // subscription -> tasks given to it here that the topic has not heard the end of

	outcome      holdOutcome        // gathered as the above
	permits      heldPermits        // nil: it took none
	endedPermits []*dispatch.Permit // gathered as the above
}

func newShard(rt *runtime, id store.Shard, ref *Topic, at shardSlot, saved *savedShard) *shard {
	s := &shard{
		runtime:  rt,
		id:       id,
		ref:      ref,
		dozing:   at.dozing,
		primary:  at.clock,
		jumps:    at.clock.jumped(),
		saved:    saved,
		topic:    ref.config.Load(),
		log:      rt.log,
		calls:    engine.NewCalls(rt.pool),
		adds:     engine.Batcher[Addition]{Most: 1, Limit: store.BatchItems, Size: additionSize},
		holdNews: engine.Batcher[Addition]{Most: 1, Limit: store.BatchItems, Size: additionSize},
		keyed:    engine.Batcher[Addition]{Most: 1, Limit: store.BatchItems, Size: additionSize},
		holds:    engine.Batcher[holdRequest]{Most: 4, Limit: holdBatch},
		acks:     engine.Batcher[settleItem]{Most: 1, Limit: store.BatchItems, Size: resultSize},
		nacks:    engine.Batcher[settleItem]{Most: 1, Limit: store.BatchItems},
		extends:  engine.Batcher[settleItem]{Most: 1, Limit: store.BatchItems},
		recovers: engine.Batcher[expired]{Most: 1, Limit: holdBatch},
		outgoing: make(map[*subscriber]*[]heldTask),
		freed:    make(map[int64]int),
		refunds:  make(map[int64]int),
		assigned: make(map[int64]int),
		counting: make(map[int64]int),
	}
	s.holds.Size = s.bodyEstimate
	s.tasks = agenda.NewShard(agenda.Config{
		Horizon: rt.cfg.Horizon, Wheel: rt.cfg.WheelBudget, Ready: rt.cfg.ReadyBudget, Page: loadPage, Spare: spareTime,
	}, &dueWheel{s: s})
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
		s.add(m.items)
	case *holdTasks:
		s.hold(m)
	case *settleHolds:
		s.settle(m)
	case *slotDue:
		s.onSlot(m.ms)
	case *deadlinesDue:
		s.onDeadlines(m.ms)
	case *flushBatches:
		s.flushBatches()
	case *callDone:
		s.onCall(m)
	case *orderLook:
		s.onOrderLook(m.ms)
	case *pendingChanged:
		s.becamePending(m.seq, m.tasks)
	case *pendingGone:
		s.tasks.Removed(m.ids)
		s.onGone(m.ids)
	case *forget:
		m.confirm()
	case *configured:
		s.topic = &m.topic
	case *placed:
		s.onClaim(agenda.ClaimEvent{Kind: agenda.ClaimPlaced, Wanted: m.wanted})
		if m.told {
			s.onClaim(agenda.ClaimEvent{Kind: agenda.ClaimTold})
		}
	case *pendingElsewhere:
		s.learnNotice(m)
	case *endedElsewhere:
		for _, h := range m.holds {
			s.unregister(h.ID, h.Token)
		}
		s.tellHoldsSettled(m.holds)
	case *waitedElsewhere:
		s.wantedElsewhere(m)
	case *cancelHolds:
		s.passCancels(m.holds)
	case *heldElsewhere:
		s.takeOver(m)
	case *handShard:
		s.onClaim(agenda.ClaimEvent{Kind: agenda.ClaimHandOver})
	case *seqSeen:
		s.checkSeq(m)
	case *describeShard:
		m.reply <- s.describe()
	case *leaseLost:
		s.onClaim(agenda.ClaimEvent{Kind: agenda.ClaimLeaseLost})
	case *leaseBack:
		s.onClaim(agenda.ClaimEvent{Kind: agenda.ClaimRetry})
	case *reload:
		s.reload()
	case *clockJumped:
		s.onClockJump()
	case *loadTick:
		s.followClock()
		s.onClaim(agenda.ClaimEvent{Kind: agenda.ClaimRetry}) // nothing else would try again after an error
		s.refresh()
	case *watchTick:
		s.watch()
	case *releaseShard:
		s.stopClaim(m.done)
	}
	s.flush()
}

// flush sends what one message gave rise to.
func (s *shard) flush() {
	s.tasks.Settle(s.now())
	s.carryOut()
	s.countWheel()
	s.countOrders()
	s.dozing.Store(s.claim.Dozing())
	s.last.sub, s.last.tasks = nil, nil
	for sub, gathered := range ordered.All(s.outgoing, compareSubscribers) {
		tasks := *gathered
		delete(s.outgoing, sub)
		if sub.gone.Load() {
			sub.budget.discard(tasks)
			s.giveBack(tasks) // its worker may have stopped
			continue
		}
		s.send(sub.worker, &deliver{shard: s.id.N, tasks: tasks})
	}
	if ready := s.tasks.TakeReady(); len(ready) > 0 {
		s.send(s.parent, &becameReady{shard: s.id.N, tasks: ready})
	}
	for sub, n := range ordered.All(s.freed, cmp.Compare) {
		delete(s.freed, sub)
		s.unassign(sub, n)
		s.send(s.parent, &settledHolds{sub: sub, n: n})
	}
	for sub, n := range ordered.All(s.refunds, cmp.Compare) {
		delete(s.refunds, sub)
		s.unassign(sub, n)
		s.send(s.parent, &refunded{sub: sub, n: n, shard: s.id.N, counted: s.counting[sub]})
		delete(s.counting, sub)
	}
	if len(s.endedPermits) > 0 {
		s.send(s.parent, &permitsEnded{permits: s.endedPermits})
		s.endedPermits = nil
	}
	if s.outcome != (holdOutcome{}) {
		outcome := s.outcome
		s.outcome, outcome.shard = holdOutcome{}, s.id.N
		s.send(s.parent, &outcome)
	}
	s.flushClaim()
}

// giveBack releases holds that no worker will hear of.
func (s *shard) giveBack(tasks []heldTask) {
	if len(tasks) == 0 {
		return
	}
	asked := make([]Settlement, len(tasks))
	for i, h := range tasks {
		asked[i] = Settlement{Kind: SettleRelease, ID: h.task.ID, Token: encodeToken(s.id.N, h.token), Unseen: true}
	}
	call := newSettleCall(asked, func([]Settled) {})
	items := make([]int, len(tasks))
	for i, h := range tasks {
		call.tokens[i], items[i] = h.token, i
	}
	s.settle(&settleHolds{call: call, items: items})
}

func (s *shard) countWheel() {
	if n := s.due.Len(); n != s.counted {
		s.metrics.wheel.Add(float64(n - s.counted))
		s.counted = n
	}
}

func (s *shard) start(c actor.Context) {
	s.self, s.parent = c.Self(), c.Parent()
	s.due = s.newQueue(func(ms int64) { s.post(&slotDue{ms}) })
	s.deadlines = s.newQueue(func(ms int64) { s.post(&deadlinesDue{ms}) })
	s.held = agenda.NewHoldTable(holdAlarms{s.deadlines})
	s.metrics.shards.Inc()
	s.restore()
	if s.ref.reachable.Load() && s.ref.shard(s.id.N) != nil { // else it is placed once it is
		s.onClaim(agenda.ClaimEvent{Kind: agenda.ClaimRetry})
	}
}

// stop ends everything the shard owns. What waits for a store call fails; what
// is in one is abandoned, and its callers learn that the outcome is unknown.
func (s *shard) stop() {
	failAdditions(s.adds.Waiting, problem.Draining())
	failAdditions(s.holdNews.Waiting, problem.Draining())
	failAdditions(s.keyed.Waiting, problem.Draining())
	refuseAll(s.acks.Waiting, problem.Draining())
	refuseAll(s.nacks.Waiting, problem.Draining())
	refuseAll(s.extends.Waiting, problem.Draining())
	s.calls.Close()
	s.tasks.Forget()
	s.due.Close()
	s.held.Close()
	s.countWheel()
	s.countOrders()
	s.metrics.shards.Dec()
	if s.claim.Owned() {
		s.metrics.owned.Dec()
	}
	s.send(s.parent, &shardLost{shard: s.id.N, ended: true})
}

// noteError acts on what a failed store call says about ownership.
func (s *shard) noteError(err error) {
	switch {
	case err == nil, errors.Is(err, context.Canceled):
	case errors.Is(err, store.ErrFenced) && !s.claim.Owned(): // of a claim that is over already
	case errors.Is(err, store.ErrFenced):
		s.log.Warn("shard lost to another claim", "topic", s.id.Topic, "shard", s.id.N, "epoch", s.claim.Fence().Epoch)
		s.onClaim(agenda.ClaimEvent{Kind: agenda.ClaimFenced})
	case errors.Is(err, store.ErrSealed): // those who add look again where it goes
	default:
		s.metrics.storeErrors.Inc()
		s.log.Debug("store call failed", "topic", s.id.Topic, "shard", s.id.N, "err", err)
		s.warn(err)
	}
}

// warnPause is how often a shard says at most that its store calls fail.
const warnPause = time.Minute

// warn tells of what is wrong with this shard alone. That the store is away or full is
// told by others, once for all shards.
func (s *shard) warn(err error) {
	for _, common := range []error{store.ErrUnavailable, store.ErrUnknown, store.ErrFull, store.ErrClosed, context.DeadlineExceeded} {
		if errors.Is(err, common) {
			return
		}
	}
	if now := time.Now(); now.Sub(s.warned) >= warnPause {
		s.warned = now
		s.log.Warn("store calls of a shard fail", "topic", s.id.Topic, "shard", s.id.N, "err", err)
	}
}

// idle reports whether no store call runs or waits that somebody depends on.
func (s *shard) idle() bool {
	return !s.claim.GivingUp() && s.adds.Idle() && s.holdNews.Idle() && s.keyed.Idle() && s.holds.Idle() && s.acks.Idle() &&
		s.nacks.Idle() && s.extends.Idle() && s.recovers.Idle()
}

func (s *shard) refund(sub *subscriber, n int) { s.refunds[sub.id] += n }

// endAssignments refunds assignments that came to nothing.
func (s *shard) endAssignments(sub *subscriber, n int, counted bool) {
	s.refund(sub, n)
	if counted {
		s.counting[sub.id] += n
	}
}

// post sends a message to the shard itself. Safe from any goroutine.
func (s *shard) post(m any) { s.send(s.self, m) }

// sleep waits for d or the end of ctx.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// flushBatches starts the store calls that may start. Handlers ask for it with scheduleFlush,
// so that what waits in the mailbox joins the batches first.
func (s *shard) flushBatches() {
	s.flushScheduled = false
	s.flushAdds()
	s.flushHolds()
	s.flushSettles()
	s.flushRecovers()
}

func (s *shard) scheduleFlush() {
	if !s.flushScheduled {
		s.flushScheduled = true
		s.post(&flushBatches{})
	}
}

// reply is what a store call came to. Its callers are answered after the actor
// was told: whatever they do next reaches the actor later.
type reply interface{ answer() }

// call runs a store call, tells the actor, and answers the callers.
func (s *shard) call(do func(ctx context.Context) reply) {
	s.calls.Run(func(ctx context.Context) {
		m := do(ctx)
		s.done(m)
		m.answer()
	})
}
