package actors

import (
	"context"
	"sync"
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
)

// Subscription is one worker's standing request at an open topic. Its methods do not wait and
// are safe for concurrent use.
type Subscription struct {
	rt    *runtime
	topic *Topic
	sub   *subscriber
	once  sync.Once
}

// Subscribe opens a subscription that hands deliveries to out; end ends it, and ctx is for
// the opening only.
func (r *Topic) Subscribe(ctx context.Context, o SubscribeOptions, out Outbox) (*Subscription, error) {
	reply := make(chan *subscriber, 1)
	r.rt.send(r.pid, &subscribe{options: o, out: out, reply: reply})
	select {
	case sub := <-reply:
		if sub == nil {
			return nil, problem.ErrClosed()
		}
		return &Subscription{rt: r.rt, topic: r, sub: sub}, nil
	case <-ctx.Done():
		r.rt.send(r.pid, &abandoned{reply: reply})
		return nil, ctx.Err()
	}
}

// Grant adds credit for n deliveries.
func (h *Subscription) Grant(n int) { h.rt.send(h.topic.pid, &grant{sub: h.sub.id, n: n}) }

// Settle asks for settlements; the outbox gets the results under the same sequence.
func (h *Subscription) Settle(sequence uint64, settlements []Settlement) {
	h.rt.send(h.sub.worker, &settleFrame{sequence: sequence, settlements: settlements, out: h.sub.out})
}

// Sent records bytes of deliveries that left the outbox.
func (h *Subscription) Sent(bytes int64) { h.sub.budget.sent(bytes) }

// End ends the subscription. undelivered are deliveries that the outbox took and never
// sent; their holds are released. It may be called again.
func (h *Subscription) End(undelivered []Delivery) {
	h.once.Do(func() {
		h.sub.gone.Store(true)
		h.sub.budget.open(true)
		h.rt.send(h.topic.pid, &unsubscribe{sub: h.sub.id, undelivered: undelivered})
	})
}

// Settle settles holds of the topic; done is told the outcomes, from any goroutine.
func (r *Topic) Settle(settlements []Settlement, done func([]Settled)) {
	r.dispatch(newSettleCall(settlements, done))
}

// Pending tells a shard that one store call made tasks pending, or moved them. It is a hint.
func (r *Topic) Pending(n int, seq int64, tasks ...store.Entry) {
	r.tell(n, &pendingChanged{tasks: tasks, seq: seq})
}

// Deleted tells a shard that tasks were deleted. It is a hint.
func (r *Topic) Deleted(n int, ids ...string) { r.tell(n, &pendingGone{ids: ids}) }

// Cancelled tells who has the workers of held tasks, here or at the owner, that their
// cancellation was asked for. It is a hint.
func (r *Topic) Cancelled(at store.Shard, holds ...EndedHold) {
	r.tell(at.N, &cancelHolds{holds: holds})
	r.rt.fleet.NotifyOwner(at, Notice{Cancels: []CancelNotice{{Shard: at, Holds: holds}}})
}

// Add sends tasks to their shards.
func (r *Topic) Add(batch *AddBatch) {
	r.rt.use(&r.shared.active)
	r.rt.send(r.pid, batch)
}

func (m *subscribe) Fail(*problem.Error) {
	select {
	case m.reply <- nil:
	default: // it was answered before the panic
	}
}

func (m *settleFrame) Fail(err *problem.Error) {
	results := make([]Settled, len(m.settlements))
	for i, a := range m.settlements {
		results[i] = Settled{ID: a.ID, Token: a.Token, Kind: a.Kind, Err: err}
	}
	m.out.Settled(m.sequence, results)
}

// Wanted tells a shard that it is for this node to own. It is a hint.
func (r *Topic) Wanted(n int) { r.tell(n, &placed{wanted: true}) }

// Seen shows a shard what the store says of it.
func (r *Topic) Seen(n int, st *store.Stats) {
	r.tell(n, &seqSeen{seq: st.Seq, empty: st.Pending+st.Running == 0})
}

// CancelAsk tells a worker that a task's cancellation was asked for.
type CancelAsk struct {
	ID    string
	Token []byte
}

// Bytes is what a delivery counts of MaxBytes.
func (d *Delivery) Bytes() int64 { return bodyBytes(d.Task) }

// SubscribeOptions are one worker's wishes for one topic.
type SubscribeOptions struct {
	Topic       string
	Worker      string
	MaxInFlight int           // 0: 1,000; at most Limits.MaxInFlight
	Visibility  time.Duration // 0: the topic's
	LocalOnly   bool          // of shards that this node owns
	Peer        string        // the node that subscribes on demand; empty for a worker
	OnDemand    bool          // credit that finds no ready task comes back, see Outbox.Demand

	// MaxBytes bounds the bodies that are out of the store for the subscription and not
	// sent. 0, and at most: Config.SubscriptionBytes.
	MaxBytes int
	// TellsSent has what the outbox took count until Subscription.Sent is told of it.
	TellsSent bool
}

// ByNode reports whether it is another node that subscribes, for a worker of its own.
func (o *SubscribeOptions) ByNode() bool { return o.OnDemand && o.Peer != "" }

// Delivery is a task held for a worker.
type Delivery struct {
	Topic      string
	Task       *store.Task
	MaxRetries int
	Token      []byte        // opaque to workers: shard and hold token
	Deadline   store.Millis  // of the hold, on the store's clock; 0: not told
	HoldFor    time.Duration // what is left of the hold at hand-over
}

// SettleKind is what a worker asks for one hold.
type SettleKind uint8

const (
	SettleAck SettleKind = iota + 1
	SettleNack
	SettleRelease // give back without spending the attempt
	SettleExtend
)

// Settlement is a worker's request about one hold.
type Settlement struct {
	Kind      SettleKind
	ID        string
	Token     []byte
	Error     string         // nack
	Delay     *time.Duration // nack, release: nil leaves it to the backoff (release: at once)
	Permanent bool           // nack: dead-letter
	Result    []byte         // ack: kept with the done task
	Unseen    bool           // release: no worker has seen the task, which is no attempt
	Extend    time.Duration  // extend: 0 the topic's visibility timeout

	// Refused is the answer to a settlement that is wrong in itself; nothing is done then.
	Refused *problem.Error

	reason store.Reason // nack: dead-letter for this reason
}

// Settled is the outcome of one Settlement.
type Settled struct {
	ID      string
	Token   []byte
	Kind    SettleKind
	Already bool          // ack: accepted before
	State   store.State   // nack, release: the task's state now
	Due     store.Millis  // nack, release: when it is due again
	HoldFor time.Duration // extend: what the hold lasts from now

	Cancelled bool // extend: the task's cancellation was asked for

	Err *problem.Error // nil: done
}

// Outbox is where what goes to a subscription's stream is put. Its methods may be
// called from any goroutine and must not block.
type Outbox interface {
	// Deliver takes deliveries, the slice too; false when the stream has ended and took none.
	Deliver([]Delivery) bool
	Settled(sequence uint64, results []Settled)
	Drain(grace time.Duration)
	// Cancel says that the cancellation of delivered tasks was asked for.
	Cancel([]CancelAsk)
	// Demand, of a subscription on demand: how many tasks are ready without credit
	// now, and how much credit came back unused.
	Demand(ready, returned int)
	// NodesChanged, of a worker's subscription on demand: the fleet is another one.
	NodesChanged()
}

// Assigned is how many tasks were found for the subscription and are not sent yet.
func (h *Subscription) Assigned() int64 { return h.sub.budget.assigned.Load() }
