package servicetest

import (
	"sync"
	"sync/atomic"

	"github.com/ddq-io/ddq/store"
)

// gatedStore holds calls back while it is frozen.
type gatedStore struct {
	store.Store
	store.Cells
	mu   sync.Mutex
	gate chan struct{} // closed by the thaw; nil when open

	refused    int              // releases to refuse from now on; guarded by mu
	deleting   func(topic bool) // see OnDelete; guarded by mu
	LimitCalls atomic.Int64
}
