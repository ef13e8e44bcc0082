package workflow

import (
	"time"

	"github.com/ddq-io/ddq/store"
)

// Limits of one workflow.
const (
	MaxInputs       = 1 << 20 // bytes of the results that a task carries
	maxToldError    = 256     // bytes of the error of a step, as those behind it are told
	MaxSignal       = 64 << 10
	MaxKeptSignals  = 100 // of one name
	MaxKnownSignals = 256 // signal ids that are known again
	MaxLateSignals  = 100 // that are listed
	MaxCells        = 16 << 20

	// DefaultRetention is how long a workflow is kept after its end where neither it nor
	// its topic says.
	DefaultRetention = 7 * 24 * time.Hour
)

func expiryOf(ended store.Millis, retention time.Duration) store.Millis {
	if retention == 0 {
		retention = DefaultRetention
	}
	return ended.Add(retention)
}
