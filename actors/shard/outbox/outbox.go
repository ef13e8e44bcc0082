// Package outbox has the messages that a shard sends carried to where they go. It is a part of the shard's actor,
// which hands it messages and what its calls came to.
package outbox

import (
	"context"
	"math"
	"time"

	"github.com/ddq-io/ddq/actors/entity/relay"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/knobs"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/runtime"
	"github.com/ddq-io/ddq/actors/shard/timers"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

const (
	queuesPage = 256         // that are listed at a time
	storeRetry = time.Second // pause before a failing store is asked again
)

// What the outbox tells itself.
type (
	queuesListed struct {
		queues []store.Queue
		epoch  int64
		err    error
	}
	// turned is what a turn came to.
	turned struct {
		*relay.Outcome
		epoch int64
	}
	// outboxDue comes from the wheel: a back-off is over, or the gate has something to do.
	outboxDue struct{ ms int64 }
)

// To the outbox of a shard.
type (
	// Sent comes from the shard itself and the node: a call sent messages to other shards.
	Sent struct{ Queues []store.Queue } // nil: to some
	// Open comes from the node: the gate lets something of these queues in.
	Open struct{ Queues []store.Queue }
)

// Host is the shard whose outbox it is. Its functions are called by the shard's actor, but for Done and Post, which
// are safe for concurrent use.
type Host struct {
	*runtime.Runtime
	*timers.Timers
	ID        store.Shard
	Knobs     knobs.Knobs
	Topic     func() *store.Topic // of the shard
	Owned     func() bool         // under the claim that Fence is of
	Fence     func() store.Fence
	NoteError func(err error)                      // what a failed store call says about ownership
	Run       func(call func(ctx context.Context)) // runs a store call off the actor
	Done      func(result any)                     // has the actor hand on what a call came to
	Post      func(message any)                    // has the actor hand a message on
	Flush     func()                               // has the actor call Outbox.Flush once what is in its mailbox was handed on
}

// Outbox has the messages in the queues of a shard that its node owns carried to where they go. The ring says whose
// turn it is, and the node's gate how much work a topic takes.
//
// Invariants:
//   - a turn is begun under the claim only, and what it came to counts for the ring under the same one
//   - a queue that has something is in the ring, or the queues are to be listed
//   - asks wait while the work may be in the old out-box that they are about
type Outbox struct {
	Host
	relay   *relay.Relay // nil: the store keeps no entities
	ring    *relay.Ring
	alarm   timers.Alarm
	asks    []store.Queue   // that wait for the old out-box
	waiting map[string]bool // topics for which work waits in the old out-box, as its last walk found; nil: not known

	wanted  bool // the queues are to be listed
	listing bool
	turns   int // in flight
}

// New returns the outbox of a shard.
func New(h Host) *Outbox {
	o := &Outbox{Host: h, ring: relay.NewRing(), alarm: h.NewAlarm(func(ms int64) { h.Post(&outboxDue{ms}) })}
	if h.Cells == nil {
		return o
	}
	o.relay = &relay.Relay{
		ID: h.ID, Store: relayStore{h.Cells, h.Store}, Tasks: h.Store, Topic: h.Topics.Of, Stored: h.Topics.Stored, Resolve: h.Resolve, Now: h.Now,
		Admit:  func(t *store.Topic, q store.Queue, n int) int { return h.Topics.Gate.Admit(t, q, n, h.Clock.Millis()) },
		GiveUp: h.Topics.Gate.GiveUp, Counts: h.CountsOf, Pages: h.Topics.Gate.Pages, Knobs: h.Knobs, Log: h.Log,
	}
	return o
}

// relayStore is what the relay needs of the two roles of a store.
type relayStore struct {
	relay.Entities
	sealer
}

type sealer interface {
	Seal(ctx context.Context, s store.Shard) error
}

// Receive handles a message of the outbox.
func (o *Outbox) Receive(message any, own bool) {
	switch m := message.(type) {
	case *Sent:
		o.sent(m.Queues)
	case *Open:
		for _, q := range m.Queues {
			o.ring.Open(q)
		}
		o.Host.Flush()
	case *outboxDue:
		if o.alarm.Rings(m.ms) {
			o.tend()
		}
	case *queuesListed:
		o.onListed(m, own)
	case *turned:
		o.onTurn(m, own)
	}
}

// sent has a turn of queues begin that got something; of none that is named: of all.
func (o *Outbox) sent(queues []store.Queue) {
	switch {
	case o.relay == nil:
	case !o.Owned():
		if !o.Fleet.Alone() {
			o.Fleet.NotifyOwner(o.ID, fleet.Notice{Ended: []fleet.EndedNotice{{Shard: o.ID}}})
		}
	case len(queues) == 0 || !o.Fleet.ReadQueues():
		o.Look()
	default:
		o.wake(queues)
	}
}

// Look has the queues listed, and the old out-box looked at.
func (o *Outbox) Look() {
	if o.relay != nil && o.Owned() {
		o.wanted, o.waiting = true, nil
		o.ring.Wake(relay.OldBox())
		o.Host.Flush()
	}
}

func (o *Outbox) wake(queues []store.Queue) {
	for _, q := range queues {
		switch {
		case !relay.Carries(q):
		case q.Class == store.ClassAsk && o.mayBeInOldBox(q.To):
			o.asks = append(o.asks, q)
		default:
			o.ring.Wake(q)
		}
	}
	o.Host.Flush()
}

// mayBeInOldBox reports whether work for a topic may be in the old out-box.
func (o *Outbox) mayBeInOldBox(topic string) bool {
	return o.ring.Knows(relay.OldBox()) && (o.waiting == nil || o.waiting[topic])
}

// Flush begins the calls that may begin.
func (o *Outbox) Flush() {
	if o.relay == nil || !o.Owned() {
		return
	}
	fence := o.Fence()
	if o.wanted && !o.listing {
		o.wanted, o.listing = false, true
		o.Run(func(ctx context.Context) { o.Done(o.list(ctx, fence.Epoch)) })
	}
	for from, ok := o.ring.Next(); ok; from, ok = o.ring.Next() {
		from.Fence, from.Source = fence, o.Topic()
		o.turns++
		o.Run(func(ctx context.Context) { o.Done(&turned{o.relay.Turn(ctx, from), fence.Epoch}) })
	}
}

// list lists the queues of the shard.
func (o *Outbox) list(ctx context.Context, epoch int64) *queuesListed {
	m := &queuesListed{epoch: epoch}
	for last := (store.Queue{}); ; last = m.queues[len(m.queues)-1] {
		page, err := o.Cells.Queues(ctx, o.ID, last, queuesPage)
		for i := range page {
			m.queues = append(m.queues, page[i].Queue)
		}
		if m.err = err; err != nil || len(page) < queuesPage {
			return m
		}
	}
}

func (o *Outbox) onListed(m *queuesListed, own bool) {
	if !own {
		return
	}
	o.listing = false
	o.NoteError(m.err)
	switch {
	case !o.Owned():
	case m.err != nil || m.epoch != o.Fence().Epoch:
		o.wanted = true
		o.alarm.Set(o.Now().Add(storeRetry))
	default:
		o.wake(m.queues)
	}
}

// onTurn learns what a turn came to. own: this incarnation began it.
func (o *Outbox) onTurn(m *turned, own bool) {
	for _, made := range m.Made {
		o.Topics.TellPending(made.Shard, made.Seq, made.Tasks...)
	}
	for i := range m.Told {
		o.Topics.TellCommitted(&m.Told[i])
	}
	o.Metrics.Undeliverable.Add(float64(m.Undeliverable))
	o.Metrics.Schedules.Dropped.Add(float64(m.Forgotten))
	if !own {
		return
	}
	o.turns--
	o.NoteError(m.Err)
	if !o.Owned() || m.epoch != o.Fence().Epoch {
		return
	}
	o.ring.Done(m.Outcome, o.Now(), o.Random())
	if m.Queue == relay.OldBox() {
		o.onWalk(m.Outcome)
	}
	o.tend()
}

// onWalk learns how far the old out-box was read, and has asks go that need not wait for it any more.
func (o *Outbox) onWalk(m *relay.Outcome) {
	if o.waiting = nil; m.Walked {
		o.waiting = m.Waiting
	}
	asks := o.asks
	o.asks = nil
	o.wake(asks)
}

// Retry looks at what backs off, or waits at the gate: the clock was set.
func (o *Outbox) Retry() {
	if o.relay != nil && o.Owned() {
		o.tend()
	}
}

// tend has those turns begin whose back-off is over, and does what is due at the gate while a queue waits for that:
// whichever shard is first does it for all of the node.
func (o *Outbox) tend() {
	now := o.Now()
	next := o.ring.Due(now)
	if o.ring.Waits() {
		atGate := o.Clock.Millis()
		count, open, due := o.Topics.Gate.Due(atGate)
		o.Topics.OpenQueues(open)
		for _, topic := range count {
			o.Run(func(ctx context.Context) { o.count(ctx, topic) })
		}
		if at := now.Add(due.Sub(atGate)); due != 0 && (next == 0 || at < next) {
			next = at
		}
	}
	if next != 0 {
		o.alarm.Set(next)
	}
	o.Host.Flush()
}

// count tells the gate how many tasks are pending in a topic. When that fails, the gate asks for it again.
func (o *Outbox) count(ctx context.Context, topic string) {
	t, e := o.Topics.Of(ctx, topic, false)
	if e != nil && e.Kind != problem.NotFound {
		return
	}
	pending := int64(0)
	if e == nil {
		stats, err := o.CountsOf(ctx, place.Shards(t))
		if err != nil {
			return
		}
		for i := range stats {
			pending += stats[i].Pending
		}
	}
	o.Topics.OpenQueues(o.Topics.Gate.Counted(topic, pending, o.Clock.Millis()))
}

// Idle reports whether no call is in flight.
func (o *Outbox) Idle() bool { return o.turns == 0 && !o.listing }

// Fenced is how many calls are in flight under the fence of the claim.
func (o *Outbox) Fenced() int { return o.turns }

// Lose leaves the queues to whoever claims the shard next.
func (o *Outbox) Lose() {
	for _, q := range o.ring.Reset() {
		o.Topics.Gate.Forget(q)
	}
	o.wanted, o.asks, o.waiting = false, nil, nil
	o.alarm.Clear()
}

// Stop ends its timers.
func (o *Outbox) Stop() { o.alarm.Close() }

// DozesUntil is 0 while there is something to do.
func (o *Outbox) DozesUntil() store.Millis {
	if o.wanted || !o.Idle() || o.ring.Has() {
		return 0
	}
	return math.MaxInt64
}
