package servicetest

import (
	"sync"
	"sync/atomic"

	"github.com/ddq-io/ddq/store"
)

// cellStore is the role under another name: one field cannot be called as its method.
type cellStore = store.Cells

// gatedStore holds calls back while it is frozen.
type gatedStore struct {
	store.Store
	cellStore
	mu   sync.Mutex
	gate chan struct{} // closed by the thaw; nil when open

	refused    int                    // releases to refuse from now on; guarded by mu
	deleting   func(topic bool) error // see OnDelete; guarded by mu
	acquiring  func(key string)       // see OnAcquire; guarded by mu
	moved      func() error           // see OnMove; guarded by mu
	committing aroundCommits          // see AroundCommits; guarded by mu
	LimitCalls atomic.Int64
	NoTake     atomic.Bool // Take answers that there is none
	NoCounts   atomic.Bool // Counts is not answered
	manyClocks bool

	faults atomic.Pointer[func() Fault] // see Trouble
}
