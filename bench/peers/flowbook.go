package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/ddq-io/ddq/bench/lateness"
	"github.com/ddq-io/ddq/bench/result"
)

// flowBook is what the worker processes of a system told of workflows, a line for each handler that
// ended:
//
//	ran FLOW HANDLER BEGAN ENDED
//
// FLOW is its id, HANDLER a number of flowShape, and times are in Unix microseconds. It is safe for
// concurrent use.
type flowBook struct {
	shape *flowShape
	word  string        // of the ids
	ended chan struct{} // gets one for each workflow whose handlers have all ended
	half  chan struct{} // closed when half of all handlers have ended

	mu    sync.Mutex // guards what follows
	flows map[string]*flowRan
	left  int // handlers of all workflows that have not ended
	again int // handlers that ran again
	heard time.Time
}

// flowRan is how the handlers of a workflow ran first; 0 of one that has not.
type flowRan struct {
	began, ended []int64 // Unix us
	left         int
}

// newFlowBook is of n workflows.
func newFlowBook(s *flowShape, word string, n int) *flowBook {
	b := &flowBook{
		shape: s, word: word, ended: make(chan struct{}, n), half: make(chan struct{}),
		flows: make(map[string]*flowRan, n), left: n * s.handlers(), heard: time.Now(),
	}
	for i := range n {
		b.flows[b.id(i)] = &flowRan{make([]int64, s.handlers()), make([]int64, s.handlers()), s.handlers()}
	}
	return b
}

// id is that of the i-th workflow.
func (b *flowBook) id(i int) string { return fmt.Sprint(b.word, "-", i) }

// note takes a line of a process. One of a workflow of another book is nothing to note.
func (b *flowBook) note(line string, now time.Time) error {
	var flow string
	var handler int
	var began, ended int64
	if _, err := fmt.Sscanf(line, "ran %s %d %d %d", &flow, &handler, &began, &ended); err != nil {
		return fmt.Errorf("line %q: %w", line, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.flows[flow]
	if f == nil || handler < 0 || handler >= len(f.ended) {
		return nil
	}
	b.heard = now
	if f.ended[handler] != 0 {
		b.again++
		return nil
	}
	f.began[handler], f.ended[handler] = began, ended
	b.left--
	if b.left == len(b.flows)*b.shape.handlers()/2 {
		close(b.half)
	}
	if f.left--; f.left == 0 {
		b.ended <- struct{}{}
	}
	return nil
}

// stir notes that something happened that is none of the workflows' doing.
func (b *flowBook) stir(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heard = now
}

// idle is for how long nothing has happened.
func (b *flowBook) idle(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return now.Sub(b.heard)
}

// read writes what became of the workflows, which were submitted from begun on, to a line.
func (b *flowBook) read(begun time.Time, line *result.Line) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := len(b.flows) * b.shape.handlers()
	hop, last := lateness.New(), int64(0)
	for _, f := range b.flows {
		if f.left > 0 {
			line.NeverEnded++
		}
		for _, at := range f.ended {
			last = max(last, at)
		}
		b.hops(f, func(us int64) {
			if us < 0 {
				line.Early++
			}
			_ = hop.RecordValue(min(max(us, 1), lateness.Ceiling)) // in range by this
		})
	}
	line.Tasks, line.Repeat, line.LateMS = all, b.again, lateness.Of(hop)
	if took := float64(last-begun.UnixMicro()) / 1e6; took > 0 && !b.shape.killed {
		line.Seconds, line.EndToEndPerS = result.Round(took, 3), result.Round(float64(all-b.left)/took, 1)
		line.CPUPer100k = result.Round(line.CPU.Sum()/float64(max(1, all-b.left))*100_000, 3)
	}
}

// hops tells how long after the last handler that it waits for each one began.
func (b *flowBook) hops(f *flowRan, tell func(us int64)) {
	last := b.shape.handlers() - 1
	if b.shape.kind == kindChain {
		for i := 1; i <= last; i++ {
			if f.ended[i] != 0 {
				tell(f.began[i] - f.ended[i-1])
			}
		}
		return
	}
	if f.ended[last] == 0 {
		return
	}
	from := int64(0)
	for _, at := range f.ended[:last] {
		if at == 0 { // it did not wait for this one
			at = f.ended[last]
		}
		from = max(from, at)
	}
	tell(f.began[last] - from)
}
