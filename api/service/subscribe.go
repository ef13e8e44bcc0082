package service

import (
	"cmp"
	"context"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service/text"
	"github.com/ddq-io/ddq/store"
)

// Delivery hands tasks to workers and takes their settlements.
type Delivery struct {
	node   *actors.Node
	tasks  *Tasks
	limits *limits
}

// Subscription is one worker's standing request for one topic. Its methods do
// not wait and are safe for concurrent use.
type Subscription struct {
	Options subscription.Options // as resolved
	Node    string

	limits *limits
	tasks  *Tasks
	handle *actors.Subscription
}

// Subscribe opens a subscription that hands deliveries to out. Unsubscribe ends
// it; ctx is for the opening only.
func (s *Delivery) Subscribe(ctx context.Context, o subscription.Options, out subscription.Outbox) (*Subscription, error) {
	if err := s.node.Serving(); err != nil {
		return nil, err
	}
	if err := s.checkSubscribe(&o); err != nil {
		return nil, err
	}
	ref, err := s.node.Topics().Open(ctx, o.Topic, !o.ByNode()) // another node may not have heard of a deletion
	if err != nil {
		return nil, err
	}
	o.MaxInFlight = min(cmp.Or(o.MaxInFlight, 1000), s.limits.MaxInFlight)
	o.MaxBytes = min(cmp.Or(o.MaxBytes, s.node.Config().SubscriptionBytes), s.node.Config().SubscriptionBytes)
	o.Visibility = cmp.Or(o.Visibility, ref.Config().Visibility)
	opened, e := ref.Subscribe(ctx, o, out)
	if e != nil {
		return nil, problem.AsError(e)
	}
	return &Subscription{Options: o, Node: s.node.Config().Node, limits: s.limits, tasks: s.tasks, handle: opened}, nil
}

// OpenStream lets a stream of a worker of a topic begin, unless its namespace has as many as it may. leave is called
// at its end.
func (s *Delivery) OpenStream(ctx context.Context, topic string) (leave func(), err error) {
	leave, e := s.tasks.tenants.OpenStream(ctx, topic)
	return leave, problem.AsError(e)
}

func (s *Delivery) checkSubscribe(o *subscription.Options) *problem.Error {
	l := s.limits
	if err := actors.CheckTopicName("topic", o.Topic); err != nil {
		return err
	}
	if err := l.checkName("worker", o.Worker); err != nil {
		return err
	}
	if err := l.checkName("node", o.Peer); err != nil {
		return err
	}
	if o.MaxInFlight < 0 {
		return problem.BadField("max_in_flight", "OUT_OF_RANGE_FIELD", "max_in_flight must not be negative")
	}
	if o.MaxBytes < 0 {
		return problem.BadField("max_bytes", "OUT_OF_RANGE_FIELD", "max_bytes must not be negative")
	}
	return l.checkVisibility(o.Visibility)
}

// Grant adds credit for n deliveries, 1 to the limit of max in flight.
func (u *Subscription) Grant(n int) error {
	if most := u.limits.MaxInFlight; n < 1 || n > most {
		return problem.BadField("credit", "BAD_STREAM", "credit must be 1 to %d", most)
	}
	u.handle.Grant(n)
	return nil
}

// Settle asks for settlements; the outbox gets the results under the same sequence.
// Settlements that cannot be are refused in the results.
func (u *Subscription) Settle(sequence uint64, settlements []subscription.Settlement) {
	u.tasks.checkSettlements(settlements)
	u.handle.Settle(sequence, settlements)
}

// SettleNext is Settle for acks by which something comes next. It may wait for the store, to know their topics.
func (u *Subscription) SettleNext(ctx context.Context, sequence uint64, settlements []subscription.Settlement, next Nexts) {
	u.tasks.checkSettlements(settlements)
	next.complete(ctx, u.tasks, u.Options.Topic, settlements)
	u.handle.Settle(sequence, settlements)
}

// Sent says that deliveries left the outbox: they were written to the stream, or given
// back. It is for subscriptions with TellsSent.
func (u *Subscription) Sent(bytes int64) { u.handle.Sent(bytes) }

// Assigned is how many tasks were found for the subscription and are not sent yet.
func (u *Subscription) Assigned() int64 { return u.handle.Assigned() }

// Unsubscribe ends the subscription. undelivered are deliveries that the outbox
// took and never sent; their holds are released.
func (u *Subscription) Unsubscribe(undelivered []subscription.Delivery) {
	u.handle.End(undelivered)
}

// Settle settles holds of a topic at any node and waits for the outcome. Settlements that
// cannot be are refused in the results. When ctx ends first the outcome is unknown.
func (s *Delivery) Settle(ctx context.Context, topic string, settlements []subscription.Settlement) ([]subscription.Settled, error) {
	return s.SettleNext(ctx, topic, settlements, nil)
}

// SettleNext is Settle for acks by which something comes next.
func (s *Delivery) SettleNext(ctx context.Context, topic string, settlements []subscription.Settlement, next Nexts) ([]subscription.Settled, error) {
	if !s.node.Running() {
		return nil, s.node.Serving()
	}
	s.tasks.checkSettlements(settlements)
	next.complete(ctx, s.tasks, topic, settlements)
	if len(settlements) == 1 && settlements[0].Refused != nil {
		return nil, settlements[0].Refused // whatever the topic is
	}
	ref, err := s.node.Topics().Open(ctx, topic, false)
	if err != nil {
		return nil, err
	}
	done := make(chan []subscription.Settled, 1)
	ref.Settle(settlements, func(results []subscription.Settled) { done <- results })
	select {
	case results := <-done:
		return results, nil
	case <-ctx.Done():
		return nil, problem.AsError(ctx.Err())
	}
}

// checkSettlements refuses what cannot be, each by itself, and counts traces that cannot be read.
func (s *Tasks) checkSettlements(settlements []subscription.Settlement) {
	for i := range settlements {
		a := &settlements[i]
		if a.Refused = s.limits.checkSettlement(a); a.TraceCut {
			s.node.Metrics().TracesCut.Inc()
		}
	}
}

func (l *limits) checkSettlement(a *subscription.Settlement) *problem.Error {
	if err := l.CheckID(a.ID); err != nil {
		err.Field = "task_id"
		return err
	}
	if a.Delay != nil && (*a.Delay < 0 || *a.Delay > l.Delay) {
		return problem.BadField("delay_ms", "BAD_DELAY", "delay_ms must be 0 to %d", l.Delay.Milliseconds())
	}
	if n := len(a.Result); n > l.Result {
		return problem.BadField("result", "RESULT_TOO_LARGE", "result has %d bytes; at most %d are allowed", n, l.Result)
	}
	if a.Kind == subscription.SettleCheckpoint {
		return checkCheckpoint(a)
	}
	return l.checkVisibility(a.Extend)
}

func checkCheckpoint(a *subscription.Settlement) *problem.Error {
	if a.Name == "" {
		return problem.BadField("name", "BAD_NAME", "name must have 1 to %d bytes", store.MaxJournalName)
	}
	if n := len(a.Value); n > store.MaxJournalValue {
		return problem.BadField("value", "RESULT_TOO_LARGE", "value has %d bytes; at most %d are allowed", n, store.MaxJournalValue)
	}
	return text.CheckNote("name", a.Name, store.MaxJournalName, "BAD_NAME")
}
