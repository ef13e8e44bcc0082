package actors

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/runtime"
	"github.com/ddq-io/ddq/actors/shard"
	"github.com/ddq-io/ddq/actors/shard/outbox"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/store"
)

// Subscription is one worker's standing request at an open topic. Its methods do not wait and
// are safe for concurrent use.
type Subscription struct {
	rt    *runtime.Runtime
	topic *Topic
	sub   *subscription.Subscriber
	once  sync.Once
}

// Subscribe opens a subscription that hands deliveries to out; end ends it, and ctx is for
// the opening only.
func (r *Topic) Subscribe(ctx context.Context, o subscription.Options, out subscription.Outbox) (*Subscription, error) {
	reply := make(chan *subscription.Subscriber, 1)
	r.rt.Send(r.pid, &subscribe{options: o, out: out, reply: reply})
	select {
	case sub := <-reply:
		if sub == nil {
			return nil, problem.ErrClosed()
		}
		return &Subscription{rt: r.rt, topic: r, sub: sub}, nil
	case <-ctx.Done():
		r.rt.Send(r.pid, &abandoned{reply: reply})
		return nil, ctx.Err()
	}
}

// Grant adds credit for n deliveries.
func (h *Subscription) Grant(n int) { h.rt.Send(h.topic.pid, &grant{sub: h.sub.ID, n: n}) }

// Settle asks for settlements; the outbox gets the results under the same sequence.
func (h *Subscription) Settle(sequence uint64, settlements []subscription.Settlement) {
	h.rt.Send(h.sub.Worker, &settleFrame{sequence: sequence, settlements: settlements, out: h.sub.Out})
}

// Sent records bytes of deliveries that left the outbox.
func (h *Subscription) Sent(bytes int64) { h.sub.Budget.Sent(bytes) }

// End ends the subscription. undelivered are deliveries that the outbox took and never
// sent; their holds are released. It may be called again.
func (h *Subscription) End(undelivered []subscription.Delivery) {
	h.once.Do(func() {
		h.sub.Gone.Store(true)
		h.sub.Budget.Open(true)
		h.rt.Send(h.topic.pid, &unsubscribe{sub: h.sub.ID, undelivered: undelivered})
	})
}

// Settle settles holds of the topic; done is told the outcomes, from any goroutine.
func (r *Topic) Settle(settlements []subscription.Settlement, done func([]subscription.Settled)) {
	r.dispatch(shard.NewSettleCall(settlements, done))
}

// Pending tells a shard that one store call made tasks pending, or moved them. It is a hint.
func (r *Topic) Pending(n int, seq int64, tasks ...store.Entry) {
	r.tell(n, &shard.PendingChanged{Tasks: tasks, Seq: seq})
}

// Deleted tells a shard that the store call of a seq deleted tasks. It is a hint.
func (r *Topic) Deleted(n int, seq int64, ids ...string) {
	r.tell(n, &shard.PendingGone{Ids: ids, Seq: seq})
}

// CellsChanged tells the owner of a shard, here or elsewhere, that a call changed when its
// cells wake. It is a hint.
func (r *Topic) CellsChanged(n int) { r.tell(n, &shard.CellsChanged{}) }

// Committed tells a shard of a call that committed a change of a cell: its owner, here or elsewhere,
// looks at the tasks that came and went, and at once at the cell, unless it does not wake. It is a hint.
// What went comes first: the look may make a task of the same id anew.
func (r *Topic) Committed(n int, c *store.Commit, stamp store.Stamp) {
	if len(c.Removes) > 0 {
		r.Deleted(n, stamp.Seq, c.Removed()...)
	}
	if len(c.Adds) > 0 {
		r.Pending(n, stamp.Seq, store.EntriesOf(c.Adds)...)
	}
	if slices.ContainsFunc(c.Send, func(p store.Parcel) bool { return p.Topic != "" }) {
		r.MessagesSent(n)
	}
	told := slices.ContainsFunc(c.Send, func(p store.Parcel) bool { return p.Topic == "" })
	if told || slices.ContainsFunc(c.Puts, func(p store.Put) bool { return p.Wake != 0 }) {
		r.tell(n, &shard.CellsChanged{Wake: onlyWake(c, told)})
	}
}

// onlyWake is when the one schedule wakes that a commit puts; 0 for one that does more.
func onlyWake(c *store.Commit, told bool) store.Millis {
	if told || len(c.Puts) != 1 || c.Puts[0].ID.Kind() != store.CellSchedule {
		return 0
	}
	return c.Puts[0].Wake
}

// MessagesSent tells the owner of a shard, here or elsewhere, that a call sent messages from it to
// other shards. It is a hint.
func (r *Topic) MessagesSent(n int) { r.tell(n, &outbox.Sent{}) }

// Cancelled tells who has the workers of held tasks that their cancellation was asked for:
// this node, or any other, as a shard may have got another owner since. It is a hint.
func (r *Topic) Cancelled(at store.Shard, holds ...fleet.EndedHold) {
	r.tell(at.N, &shard.CancelHolds{Holds: holds})
	r.rt.Fleet.NotifyOthers(fleet.Notice{Cancels: []fleet.CancelNotice{{Shard: at, Holds: holds}}})
}

// Add sends tasks to their shards.
func (r *Topic) Add(batch *AddBatch) {
	r.rt.Use(&r.shared.Active)
	r.rt.Send(r.pid, batch)
}

// Wanted tells a shard that it is for this node to own, as who should is gone. It is a hint.
func (r *Topic) Wanted(n int) { r.tell(n, &shard.Placed{Forsaken: true}) }

// tellPending tells the shard of any topic that one store call made tasks pending.
func (s *Topics) tellPending(at store.Shard, seq int64, tasks ...store.Entry) {
	if ref, open := s.Opened(at.Topic); open {
		ref.Pending(at.N, seq, tasks...)
	}
}

// tellCommitted tells the shard of any topic of a commit, and the workers of the holds that it asks to
// end.
func (s *Topics) tellCommitted(c *fleet.Committed) {
	ref, open := s.Opened(c.Shard.Topic)
	if !open {
		return
	}
	ref.Committed(c.Shard.N, &c.Commit, c.Stamp)
	if len(c.Asked) > 0 {
		ref.Cancelled(c.Shard, c.Asked...)
	}
}

// topicOf returns what a topic is, as Open does.
func (s *Topics) topicOf(ctx context.Context, name string, create bool) (*store.Topic, *problem.Error) {
	ref, err := s.Open(ctx, name, create)
	if err != nil {
		return nil, err
	}
	return ref.Config(), nil
}

// storedTopic returns what the store says of a topic, with a generation of shards that it has forgotten
// and that will be put back.
func (s *Topics) storedTopic(ctx context.Context, name string) (*store.Topic, *problem.Error) {
	t, err := s.rt.Store.GetTopic(ctx, name)
	switch {
	case errors.Is(err, store.ErrTopicNotFound):
		return nil, problem.NoTopic(name)
	case err != nil:
		return nil, problem.FromStore(err)
	}
	if ref, open := s.Opened(name); open {
		if again, undone := restored(ref.Config(), &t); undone {
			return &again, nil
		}
	}
	return &t, nil
}

// openQueues tells the shards of queues that the gate lets something in.
func openQueues(s *Topics, queues []store.Queue) {
	for _, q := range queues {
		if ref, open := s.Opened(q.Source.Topic); open {
			ref.tell(q.Source.N, &outbox.Open{Queues: []store.Queue{q}})
		}
	}
}

// heardParcels tells a shard that its in-box got parcels. It does not wait.
func (s *Topics) heardParcels(at store.Shard, in int64) {
	ref, open := s.Opened(at.Topic)
	if !open {
		return
	}
	if slot := ref.layout.Load().at(at.N); slot.pid != nil && slot.Inbox.Heard(in) {
		s.rt.Send(slot.pid, &shard.ParcelsHeard{In: in})
	}
}

// Seen shows a shard what the store says of it. One that dozes and would learn nothing is
// left alone.
func (r *Topic) Seen(n int, st *store.Stats) {
	at := r.layout.Load().at(n)
	if at.pid == nil || at.Doze.Agrees(st) {
		return
	}
	r.rt.Send(at.pid, &shard.SeqSeen{Seq: st.Seq, Held: st.Running > 0, Empty: st.Pending+st.Running == 0, Cells: st.Cells, Parcels: st.Parcels, In: st.In, Server: st.Server})
}

// Assigned is how many tasks were found for the subscription and are not sent yet.
func (h *Subscription) Assigned() int64 { return h.sub.Budget.Assigned.Load() }
