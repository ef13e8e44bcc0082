package actors

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer"
)

const (
	storeRetry = time.Second     // pause before asking a failing store again
	watchSlack = time.Second     // how late a timer may be before the watchdog counts it
	spareTime  = 2 * time.Second // see window.spare
)

// shard is the actor of one owned shard: what is due soon, what is ready, what is
// held, and the store calls about it. It owns the goroutines of its calls, all gone
// when it has stopped.
//
// Invariants:
//   - a pending task inside the window is in due, or in out, not in both
//   - a task is in held only under the token of a hold that the store granted
//   - owned is true only between a claim and its loss; nothing is held, recovered
//     or loaded without it
//
// On nodes that do not own the shard it adds and settles all the same, tells the
// owner, and keeps the holds of this node's subscriptions, for their credit only.
type shard struct {
	*runtime
	id     store.Shard
	ref    *topicRef
	dozing *atomic.Bool // see place
	topic  *store.Topic
	parent *actor.PID
	self   *actor.PID
	log    *slog.Logger
	calls  *calls

	wanted bool // placement says it is ours
	owned  bool
	fence  store.Fence
	giving *store.Fence // a claim to release once the calls under it are over
	left   *store.Fence // a claim that may be in the store still, though the shard is not owned
	given  int          // claims that are being released
	seqs   seqs

	window  window
	lanes   lanes
	due     *timer.Queue        // pending, not due yet
	out     map[string]struct{} // ready or being held: with the topic
	orders  orderLines
	looks   *timer.Queue // ordering keys to look at; nil: none
	held    held
	acked   ackLog
	counted int // of due, in the gauge
	behind  int // of orders, in theirs

	adds     runway[addition]
	holdNews runway[addition]
	keyed    runway[addition] // with idempotency keys
	holds    runway[holdRequest]
	acks     runway[settleItem]
	nacks    runway[settleItem]
	extends  runway[settleItem]
	recovers runway[expired]

	flightAsked                  bool // a takeOff is in the mailbox
	claiming, watching, sweeping bool
	sweepAt                      string
	refusals                     int           // of claims in a row, as another node owns the shard
	releasing                    chan struct{} // closed once released
	quiet                        bool          // the store has no task of the shard, as far as is known

	// Gathered while one message is handled, then sent at once.
	waiting  []timer.Entry // on their way into due
	fresh    []store.Entry
	outgoing map[*subscriber]*[]heldTask
	last     struct { // of outgoing: where the last task went
		sub   *subscriber
		tasks *[]heldTask
	}
	unused  []hold        // allocated, see room
	freed   map[int64]int // subscription -> holds ended
	refunds map[int64]int // subscription -> assignments that came to nothing

	through      cameThrough // gathered as the above
	permits      heldPermits // nil: it took none
	endedPermits []*permit   // gathered as the above
}

func newShard(rt *runtime, id store.Shard, ref *topicRef, dozing *atomic.Bool) *shard {
	return &shard{
		runtime:  rt,
		id:       id,
		ref:      ref,
		dozing:   dozing,
		topic:    ref.config.Load(),
		log:      rt.log,
		calls:    newCalls(rt.pool),
		window:   window{wheel: rt.cfg.WheelBudget, ready: rt.cfg.ReadyBudget, spare: store.Millis(spareTime.Milliseconds())},
		lanes:    lanes{wheel: rt.cfg.WheelBudget, ready: rt.cfg.ReadyBudget},
		orders:   orderLines{most: rt.cfg.ReadyBudget},
		adds:     runway[addition]{most: 1, limit: batchItems, size: additionSize},
		holdNews: runway[addition]{most: 1, limit: batchItems, size: additionSize},
		keyed:    runway[addition]{most: 1, limit: batchItems, size: additionSize},
		holds:    runway[holdRequest]{most: 4, limit: holdBatch},
		acks:     runway[settleItem]{most: 1, limit: batchItems, size: resultSize},
		nacks:    runway[settleItem]{most: 1, limit: batchItems},
		extends:  runway[settleItem]{most: 1, limit: batchItems},
		recovers: runway[expired]{most: 1, limit: holdBatch},
		outgoing: make(map[*subscriber]*[]heldTask),
		freed:    make(map[int64]int),
		refunds:  make(map[int64]int),
	}
}

// Receive handles one message; it never waits.
func (s *shard) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		s.start(c)
	case *actor.Restarting, *actor.Stopping:
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
	case *takeOff:
		s.fly()
	case *added:
		s.onAdded(m)
	case *holdsDone:
		s.onHolds(m)
	case *acksDone:
		s.onAcks(m)
	case *nacksDone:
		s.onNacks(m)
	case *extendsDone:
		s.onExtends(m)
	case *recovered:
		s.onRecovered(m)
	case *windowLoaded:
		s.onLoaded(m)
	case *laneLoaded:
		s.onLaneLoaded(m)
	case *orderLook:
		s.onOrderLook(m.ms)
	case *orderFound:
		s.onOrderFound(m)
	case *lanesFound:
		s.onLanesFound(m)
	case *runningFound:
		s.onRunning(m)
	case *swept:
		s.onSwept(m)
	case *claimed:
		s.onClaimed(m)
	case *pendingChanged:
		s.becamePending(m.seq, []store.Entry{m.task})
	case *pendingGone:
		for _, id := range m.ids {
			s.unwait(id)
			s.orders.removed(id)
		}
		s.onGone(m.ids)
	case *forget:
		s.send(m.sub.worker, &forgotten{})
	case *configured:
		s.topic = &m.topic
	case *placed:
		s.place(m.wanted)
		if m.told {
			s.disown()
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
		s.handOver()
	case *seqSeen:
		s.checkSeq(m)
	case *givenUp:
		s.tellReleased(m)
	case *describeShard:
		m.reply <- s.describe()
	case *leaseLost:
		s.loseLease()
	case *leaseBack:
		s.claim()
	case *reload:
		s.lower(m.from)
	case *clockJumped:
		s.onClockJump()
	case *loadTick:
		s.claim() // unless owned; nothing else would try again after an error
		s.load()
		s.lanes.look()
		if s.window.full {
			s.scanLanes()
		}
	case *watchTick:
		s.watch(false)
	case *releaseShard:
		s.releasing = m.done
	}
	s.flush()
}

// flush sends what one message gave rise to.
func (s *shard) flush() {
	s.flushOrders()
	s.insertWaiting()
	s.countWheel()
	s.countOrders()
	s.dozing.Store(s.quiet || !s.wanted && !s.owned)
	if s.window.hungry(s.due.Len()-s.lanes.inWheel, len(s.out)-s.lanes.inReady) {
		s.load()
	}
	if len(s.lanes.starving) > 0 {
		s.loadLanes()
	}
	s.last.sub, s.last.tasks = nil, nil
	for sub, gathered := range inOrder(s.outgoing, compareSubscribers) {
		tasks := *gathered
		delete(s.outgoing, sub)
		if sub.gone.Load() {
			s.giveBack(tasks) // its worker may have stopped
			continue
		}
		s.send(sub.worker, &deliver{shard: s.id.N, tasks: tasks})
	}
	if len(s.fresh) > 0 {
		s.send(s.parent, &becameReady{shard: s.id.N, tasks: s.fresh})
		s.fresh = nil
	}
	for sub, n := range inOrder(s.freed, cmp.Compare) {
		delete(s.freed, sub)
		s.send(s.parent, &settledHolds{sub: sub, n: n})
	}
	for sub, n := range inOrder(s.refunds, cmp.Compare) {
		delete(s.refunds, sub)
		s.send(s.parent, &refunded{sub: sub, n: n})
	}
	if len(s.endedPermits) > 0 {
		s.send(s.parent, &permitsEnded{permits: s.endedPermits})
		s.endedPermits = nil
	}
	if s.through != (cameThrough{}) {
		through := s.through
		s.through = cameThrough{}
		s.send(s.parent, &through)
	}
	s.forgo()
	if s.giving != nil && s.holds.flying+s.holdNews.flying+s.recovers.flying == 0 {
		s.giveUp()
	}
	if s.releasing != nil && s.idle() {
		s.release()
	}
}

// giveBack releases holds that no worker will hear of.
func (s *shard) giveBack(tasks []heldTask) {
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
	s.due = s.wheel.NewQueue(func(ms int64) { s.post(&slotDue{ms}) })
	s.held = newHeld(s.wheel.NewQueue(func(ms int64) { s.post(&deadlinesDue{ms}) }))
	s.out = make(map[string]struct{})
	s.metrics.shards.Inc()
	s.wanted = s.fleet.owns(s.id)
	if s.ref.reachable.Load() && s.ref.shard(s.id.N) != nil { // else it is placed once it is
		s.claim()
	}
}

// stop ends everything the shard owns. What waits for a store call fails; what
// is in one is abandoned, and its callers learn that the outcome is unknown.
func (s *shard) stop() {
	failAdditions(s.adds.waiting, errDraining())
	failAdditions(s.holdNews.waiting, errDraining())
	failAdditions(s.keyed.waiting, errDraining())
	refuseAll(s.acks.waiting, errDraining())
	refuseAll(s.nacks.waiting, errDraining())
	refuseAll(s.extends.waiting, errDraining())
	s.calls.close()
	s.due.Close()
	s.held.close()
	s.forgetOrders()
	s.countWheel()
	s.countOrders()
	s.metrics.shards.Dec()
	s.send(s.parent, &shardLost{shard: s.id.N})
}

// noteError acts on what a failed store call says about ownership.
func (s *shard) noteError(err error) {
	switch {
	case err == nil, errors.Is(err, context.Canceled):
	case errors.Is(err, store.ErrFenced) && !s.owned: // of a claim that is over already
	case errors.Is(err, store.ErrFenced):
		s.log.Warn("shard lost to another claim", "topic", s.id.Topic, "shard", s.id.N, "epoch", s.fence.Epoch)
		s.lose()
		s.claim()
	case errors.Is(err, store.ErrSealed): // those who add look again where it goes
	default:
		s.metrics.storeErrors.Inc()
		s.log.Debug("store call failed", "topic", s.id.Topic, "shard", s.id.N, "err", err)
	}
}

// idle reports whether no store call runs or waits that somebody depends on.
func (s *shard) idle() bool {
	return s.giving == nil && s.given == 0 && s.adds.idle() && s.holdNews.idle() && s.keyed.idle() && s.holds.idle() && s.acks.idle() &&
		s.nacks.idle() && s.extends.idle() && s.recovers.idle()
}

func (s *shard) refund(sub *subscriber, n int) { s.refunds[sub.id] += n }

func (s *shard) now() store.Millis { return s.clock.millis() }

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
