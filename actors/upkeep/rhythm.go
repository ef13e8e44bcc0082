package upkeep

import (
	"context"
	"sync"
	"time"
)

// rhythm ticks for all that a node does at intervals: one timer wakes the process for all
// of them. A tick comes up to half a base early or late, and like those of a time.Ticker it is
// dropped while whoever waits for it is busy.
type rhythm struct {
	base time.Duration

	mu    sync.Mutex
	beats []*beat // guarded by mu
}

// beat is one interval.
type beat struct {
	interval time.Duration
	next     time.Time // guarded by the rhythm's mu
	c        chan struct{}
}

// each returns a channel that gets a value at an interval of no less than the base, as long
// as run runs.
func (r *rhythm) each(interval time.Duration) <-chan struct{} {
	b := &beat{interval: interval, next: time.Now().Add(interval), c: make(chan struct{}, 1)}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beats = append(r.beats, b)
	return b.c
}

// run ticks until ctx ends.
func (r *rhythm) run(ctx context.Context) {
	tick := time.NewTicker(r.base)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.tick(time.Now())
		}
	}
}

func (r *rhythm) tick(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.beats {
		if now.Before(b.next.Add(-r.base / 2)) {
			continue
		}
		if b.next = b.next.Add(b.interval); b.next.Before(now) {
			b.next = now.Add(b.interval) // the machine stood still
		}
		select {
		case b.c <- struct{}{}:
		default:
		}
	}
}

// every calls do at an interval until ctx ends.
func (r *rhythm) every(ctx context.Context, interval time.Duration, do func(context.Context)) {
	tick := r.each(interval)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
			do(ctx)
		}
	}
}
