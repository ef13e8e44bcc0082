package runtime

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/ddq-io/ddq/store"
)

// TestUnknownOutcomeStaysUnknown has the answer to a call lost, and then an error that says
// nothing of what the call did: a shard may be sealed, or full, after it took a task.
func TestUnknownOutcomeStaysUnknown(t *testing.T) {
	for _, later := range []error{store.ErrUnavailable, store.ErrSealed, store.ErrFull} {
		synctest.Test(t, func(t *testing.T) {
			rt := &Runtime{Random: func() float64 { return 0.5 }}
			tries := 0
			repeated, err := rt.Resolve(context.Background(), func() error {
				if tries++; tries == 1 {
					return store.ErrUnknown
				}
				return later
			})
			if !repeated || !errors.Is(err, store.ErrUnknown) || !errors.Is(err, later) {
				t.Errorf("after %v: repeated %v, error %v; want it unknown", later, repeated, err)
			}
		})
	}
}
