package service

import (
	"context"
	"sync"
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/subscription"
)

// Retrieve waits up to wait for due tasks and returns at most n, held.
func (s *Delivery) Retrieve(ctx context.Context, o subscription.Options, n int, wait time.Duration) ([]subscription.Delivery, error) {
	l := s.limits
	if most := min(l.RetrieveTasks, l.MaxInFlight); n < 1 || n > most {
		return nil, problem.BadField("max_tasks", "OUT_OF_RANGE_FIELD", "max_tasks must be 1 to %d", most)
	}
	if wait < 0 || wait > l.RetrieveWait {
		return nil, problem.BadField("wait_ms", "OUT_OF_RANGE_FIELD", "wait_ms must be 0 to %d", l.RetrieveWait.Milliseconds())
	}
	o.MaxInFlight, o.TellsSent = n, true // nothing is sent before the poll is over
	out := newPollOutbox()
	sub, err := s.Subscribe(ctx, o, out)
	if err != nil {
		return nil, err
	}
	if err := sub.Grant(n); err != nil {
		sub.Unsubscribe(nil)
		return nil, err
	}
	out.await(ctx, max(wait, minRetrieveWait))
	got := out.close()
	if ctx.Err() != nil {
		sub.Unsubscribe(got)
		return nil, problem.AsError(ctx.Err())
	}
	sub.Unsubscribe(nil)
	return got, nil
}

// minRetrieveWait is the time for ready tasks to come by when a poll does not wait.
const minRetrieveWait = 20 * time.Millisecond

// pollOutbox gathers deliveries for one long poll.
type pollOutbox struct {
	mu     sync.Mutex
	got    []subscription.Delivery
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
func (o *pollOutbox) Deliver(d []subscription.Delivery) bool {
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
func (o *pollOutbox) Settled(uint64, []subscription.Settled) {}

// Demand does not come: the poll's credit is not on demand.
func (o *pollOutbox) Demand(int, int) {}

// Cancel does not come in time: who polls learns it from the answer to an extend.
func (o *pollOutbox) Cancel([]subscription.CancelAsk) {}

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

func (o *pollOutbox) close() []subscription.Delivery {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	return o.got
}
