package datadir

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// compactions is Pebble's own scheduler, but that nothing is compacted until begin:
// pebble.Open waits for what it started itself, which took seconds with a million
// tasks, and there are workers to serve.
//
// The library's constructor is named for tests because nothing is granted later
// when more compactions are allowed than before. Here it is always the same number.
type compactions struct {
	*pebble.ConcurrencyLimitScheduler
	begun atomic.Bool
}

// compactors is how many tables may be rewritten at a time: a long rewrite at the
// bottom must not keep those at the top waiting, or writes would wait as well.
const compactors = 2

func newCompactions() *compactions {
	return &compactions{ConcurrencyLimitScheduler: pebble.NewConcurrencyLimitSchedulerWithNoPeriodicGrantingForTest()}
}

// TrySchedule refuses until begin. Pebble then waits to be granted what it asked for.
func (c *compactions) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	if !c.begun.Load() {
		return false, nil
	}
	return c.ConcurrencyLimitScheduler.TrySchedule()
}

// begin allows compactions, and grants what was asked for meanwhile: that happens
// whenever one is done, and this one is done at once.
func (c *compactions) begin() {
	c.begun.Store(true)
	if ok, handle := c.TrySchedule(); ok {
		handle.Done()
	}
}
