package subscription

import (
	"time"

	"github.com/ddq-io/ddq/store"
)

// HeldTask is a task just held, on its way to a worker.
type HeldTask struct {
	Task     *store.Task
	Token    store.Token
	Deadline store.Millis
}

// CancelAsk tells a worker that a task's cancellation was asked for.
type CancelAsk struct {
	ID    string
	Token []byte
}

// Bytes is what a delivery counts of MaxBytes.
func (d *Delivery) Bytes() int64 { return BodyBytes(d.Task) }

// Delivery is a task held for a worker.
type Delivery struct {
	Topic      string
	Task       *store.Task
	MaxRetries int
	Token      []byte        // opaque to workers: shard and hold token
	Deadline   store.Millis  // of the hold, on the store's clock; 0: not told
	HoldFor    time.Duration // what is left of the hold at hand-over
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
