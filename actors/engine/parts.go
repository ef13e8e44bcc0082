package engine

import (
	"context"
	"sync/atomic"
	"time"
)

// Parts has those who wait for many outcomes pass on some while others take long.
type Parts struct {
	wake  chan struct{} // something was decided
	heard atomic.Bool   // somebody waits for wake
}

const (
	partAfter = 50 * time.Millisecond // before the first part, for all to come
	partGap   = time.Millisecond      // for others to join a part
)

// NewParts returns parts of which the first waits partAfter for all, unless they are eager.
func NewParts(eager bool) *Parts {
	p := &Parts{wake: make(chan struct{}, 1)}
	p.heard.Store(eager)
	return p
}

// Step says that something was decided. It may be called by several goroutines.
func (p *Parts) Step() {
	if p.heard.Load() {
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
}

// Wait calls tell when there may be a part, until done or ctx ends. Without parts it does nothing.
func (p *Parts) Wait(ctx context.Context, done <-chan struct{}, tell func()) {
	if p == nil {
		return
	}
	pause := partAfter
	if p.heard.Load() {
		pause = partGap
	}
	late := time.NewTimer(pause)
	defer late.Stop()
	for {
		select {
		case <-done:
			return
		case <-ctx.Done():
			return
		case <-p.wake:
			late.Reset(partGap)
		case <-late.C:
			p.heard.Store(true) // before the look: what is decided after it wakes
			tell()
		}
	}
}
