package servicetest

import (
	"time"

	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/store"
)

// Ledger is a worker that acks at once, and the books of what it got.
type Ledger struct {
	*Stream
	Due  map[string]store.Millis // enqueued and not acked
	Seen map[string]int
	Last map[string]subscription.Delivery // of each task
	Late time.Duration                    // the worst so far
	Skew time.Duration                    // how far the store's clock is ahead
}
