package actors

import (
	"context"
	"sync"
	"time"
)

// Subscription is one worker's standing request for one topic. Its methods do
// not wait and are safe for concurrent use.
type Subscription struct {
	Options SubscribeOptions // as resolved
	Node    string

	sys   *System
	topic *topicRef
	sub   *subscriber
	once  sync.Once
}

// Subscribe opens a subscription that hands deliveries to out. Unsubscribe ends
// it; ctx is for the opening only.
func (s *System) Subscribe(ctx context.Context, o SubscribeOptions, out Outbox) (*Subscription, error) {
	if err := s.serving(); err != nil {
		return nil, err
	}
	if err := s.checkSubscribe(&o); err != nil {
		return nil, err
	}
	ref, err := s.topic(ctx, o.Topic, true)
	if err != nil {
		return nil, err
	}
	o.MaxInFlight = or(o.MaxInFlight, 1000)
	o.Visibility = or(o.Visibility, ref.config.Load().Visibility)
	reply := make(chan *subscriber, 1)
	s.send(ref.pid, &subscribe{options: o, out: out, reply: reply})
	select {
	case sub := <-reply:
		return &Subscription{Options: o, Node: s.cfg.Node, sys: s, topic: ref, sub: sub}, nil
	case <-ctx.Done():
		s.send(ref.pid, &abandoned{reply: reply})
		return nil, failure(ctx.Err())
	}
}

func (s *System) checkSubscribe(o *SubscribeOptions) *Error {
	l := &s.cfg.Limits
	if err := checkTopicName("topic", o.Topic); err != nil {
		return err
	}
	if err := l.checkWorker(o.Worker); err != nil {
		return err
	}
	if o.MaxInFlight < 0 || o.MaxInFlight > l.MaxInFlight {
		return invalid("max_in_flight", "OUT_OF_RANGE_FIELD", "max_in_flight must be 1 to %d", l.MaxInFlight)
	}
	return l.checkVisibility(o.Visibility)
}

// Grant adds credit for n deliveries, 1 to the limit of max in flight.
func (u *Subscription) Grant(n int) error {
	if most := u.sys.cfg.Limits.MaxInFlight; n < 1 || n > most {
		return invalid("credit", "BAD_STREAM", "credit must be 1 to %d", most)
	}
	u.sys.send(u.topic.pid, &grant{sub: u.sub.id, n: n})
	return nil
}

// Settle asks for settlements; the outbox gets the results under the same sequence.
func (u *Subscription) Settle(sequence uint64, settlements []Settlement) {
	u.sys.send(u.sub.worker, &settleFrame{sequence: sequence, settlements: settlements})
}

// Unsubscribe ends the subscription. undelivered are deliveries that the outbox
// took and never sent; their holds are released.
func (u *Subscription) Unsubscribe(undelivered []Delivery) {
	u.once.Do(func() {
		u.sub.gone.Store(true)
		u.sys.send(u.topic.pid, &unsubscribe{sub: u.sub.id, undelivered: undelivered})
	})
}

// Retrieve waits up to wait for due tasks and returns at most n, held.
func (s *System) Retrieve(ctx context.Context, o SubscribeOptions, n int, wait time.Duration) ([]Delivery, error) {
	l := &s.cfg.Limits
	if n < 1 || n > l.RetrieveTasks {
		return nil, invalid("max_tasks", "OUT_OF_RANGE_FIELD", "max_tasks must be 1 to %d", l.RetrieveTasks)
	}
	if wait < 0 || wait > l.RetrieveWait {
		return nil, invalid("wait_ms", "OUT_OF_RANGE_FIELD", "wait_ms must be 0 to %d", l.RetrieveWait.Milliseconds())
	}
	o.MaxInFlight = n
	out := newPollOutbox()
	sub, err := s.Subscribe(ctx, o, out)
	if err != nil {
		return nil, err
	}
	if err := sub.Grant(n); err != nil {
		return nil, err
	}
	out.await(ctx, max(wait, minRetrieveWait))
	got := out.close()
	if ctx.Err() != nil {
		sub.Unsubscribe(got)
		return nil, failure(ctx.Err())
	}
	sub.Unsubscribe(nil)
	return got, nil
}

// minRetrieveWait is the time for ready tasks to come by when a poll does not wait.
const minRetrieveWait = 20 * time.Millisecond

// pollOutbox gathers deliveries for one long poll.
type pollOutbox struct {
	mu     sync.Mutex
	got    []Delivery
	closed bool
	first  chan struct{} // closed at the first delivery or at a drain
	signal func()
}

func newPollOutbox() *pollOutbox {
	o := &pollOutbox{first: make(chan struct{})}
	o.signal = sync.OnceFunc(func() { close(o.first) })
	return o
}

// Deliver takes deliveries until the poll returns.
func (o *pollOutbox) Deliver(d []Delivery) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	o.got = append(o.got, d...)
	o.signal()
	return true
}

// Settled has nobody to tell.
func (o *pollOutbox) Settled(uint64, []Settled) {}

// Demand does not come: the poll's credit is not on demand.
func (o *pollOutbox) Demand(int, int) {}

// Cancel does not come in time: who polls learns it from the answer to an extend.
func (o *pollOutbox) Cancel([]CancelAsk) {}

// NodesChanged does not come either.
func (o *pollOutbox) NodesChanged() {}

// Drain ends the poll.
func (o *pollOutbox) Drain(time.Duration) { o.signal() }

func (o *pollOutbox) await(ctx context.Context, wait time.Duration) {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-o.first:
	case <-t.C:
	case <-ctx.Done():
	}
}

func (o *pollOutbox) close() []Delivery {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	return o.got
}

// Settle settles holds of a topic at any node and waits for the outcome. When ctx
// ends first the outcome is unknown.
func (s *System) Settle(ctx context.Context, topic string, settlements []Settlement) ([]Settled, error) {
	if !s.running.Load() {
		return nil, s.serving()
	}
	if err := s.cfg.Limits.checkSettlements(settlements); err != nil {
		return nil, err
	}
	ref, err := s.topic(ctx, topic, false)
	if err != nil {
		return nil, err
	}
	done := make(chan []Settled, 1)
	s.dispatch(ref, newSettleCall(settlements, func(results []Settled) { done <- results }))
	select {
	case results := <-done:
		return results, nil
	case <-ctx.Done():
		return nil, failure(ctx.Err())
	}
}

func (l *Limits) checkSettlements(settlements []Settlement) *Error {
	for i := range settlements {
		if err := l.checkSettlement(&settlements[i]); err != nil {
			return err
		}
	}
	return nil
}

func (l *Limits) checkSettlement(a *Settlement) *Error {
	if err := l.checkID(a.ID); err != nil {
		err.Field = "task_id"
		return err
	}
	if a.Delay != nil && (*a.Delay < 0 || *a.Delay > l.Delay) {
		return invalid("delay_ms", "BAD_DELAY", "delay_ms must be 0 to %d", l.Delay.Milliseconds())
	}
	if n := len(a.Result); n > l.Result {
		return invalid("result", "RESULT_TOO_LARGE", "result has %d bytes; at most %d are allowed", n, l.Result)
	}
	return l.checkVisibility(a.Extend)
}
