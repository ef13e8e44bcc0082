package faults

import (
	"context"
	"time"
)

// readClock writes down what the store's clock says, until ctx ends.
func (r *round) readClock(ctx context.Context) {
	for r.sleep(ctx, 20*time.Millisecond) == nil {
		// A reading that fails is one that is missing.
		_ = r.ledger.ReadClock(func() (time.Time, error) { return r.StoreTime(ctx) })
	}
}
