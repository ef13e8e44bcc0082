package subscription

import (
	"context"
	"sync"
	"time"
)

// Gathering gathers deliveries for one long poll.
type Gathering struct {
	mu     sync.Mutex
	got    []Delivery
	closed bool
	first  chan struct{} // closed at the first delivery or at a drain
	signal func()
}

// NewGathering returns one that has nothing.
func NewGathering() *Gathering {
	o := &Gathering{first: make(chan struct{})}
	o.signal = sync.OnceFunc(func() { close(o.first) })
	return o
}

// Deliver takes deliveries until the poll returns.
func (o *Gathering) Deliver(d []Delivery) bool {
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
func (o *Gathering) Settled(uint64, []Settled) {}

// Demand does not come: the poll's credit is not on demand.
func (o *Gathering) Demand(int, int) {}

// Cancel does not come in time: who polls learns it from the answer to an extend.
func (o *Gathering) Cancel([]CancelAsk) {}

// NodesChanged does not come either.
func (o *Gathering) NodesChanged() {}

// Drain ends the poll.
func (o *Gathering) Drain(time.Duration) { o.signal() }

// Await returns at the first delivery, at a drain, after wait, or when ctx ends.
func (o *Gathering) Await(ctx context.Context, wait time.Duration) {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-o.first:
	case <-t.C:
	case <-ctx.Done():
	}
}

// Close takes no more, and returns what there is.
func (o *Gathering) Close() []Delivery {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	return o.got
}
