package workflows

import (
	"context"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	sdk "github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/bench/lateness"
	"github.com/ddq-io/ddq/bench/result"
)

// flowBooks are the handlers of workflows that began and ended. It is safe for concurrent use.
type flowBooks struct {
	shape *flowShape

	mu                sync.Mutex // guards what follows
	flows             map[string]*flowBook
	steps             int // distinct handlers that have ended
	last              time.Time
	first, hop, whole *hdrhistogram.Histogram
	repeat            int
	redone, untimely  int
}

// flowBook is one workflow.
type flowBook struct {
	submitted time.Time
	begun     map[handlerKey]began
	ended     map[string]ended // by handler
	hopped    map[string]bool  // handlers behind whose end another one has begun
	left      int              // handlers that have not ended
	done      chan struct{}    // closed when none is left
}

// handlerKey is one handler of a workflow.
type handlerKey struct {
	name string // of its step, with " undo" when it is one
	copy int
}

// began is how a handler began last.
type began struct {
	id           string
	try, attempt int
	ended        bool
}

// ended is how often a handler has ended, with all copies, and when the last time was.
type ended struct {
	n  int
	at time.Time
}

func newFlowBooks(s *flowShape) *flowBooks {
	return &flowBooks{shape: s, flows: make(map[string]*flowBook), first: lateness.New(), hop: lateness.New(), whole: lateness.New()}
}

// open writes down that a workflow is submitted now.
func (b *flowBooks) open(id string, now time.Time) *flowBook {
	f := &flowBook{
		submitted: now, begun: make(map[handlerKey]began), ended: make(map[string]ended), hopped: make(map[string]bool),
		left: b.shape.tasks, done: make(chan struct{}),
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flows[id] = f
	return f
}

// wait waits until the handlers of a workflow have ended, or it has taken too long.
func (f *flowBook) wait(ctx context.Context) error {
	late := time.NewTimer(flowEnd)
	defer late.Stop()
	select {
	case <-f.done:
	case <-late.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// handler is what works on the steps: it writes down when they begin and end, and does what the shape
// says.
func (b *flowBooks) handler() sdk.HandlerFunc {
	return func(_ context.Context, t sdk.Task) error {
		if t.Step == nil {
			return nil
		}
		b.begin(&t, time.Now())
		err := b.shape.handle(&t)
		b.end(&t, time.Now())
		return err
	}
}

func keyOf(t *sdk.Task) handlerKey {
	k := handlerKey{t.Step.Name, t.Step.Copy}
	if t.Step.Undo {
		k.name += " undo"
	}
	return k
}

// begin writes down that a handler began.
func (b *flowBooks) begin(t *sdk.Task, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.flows[t.Step.Workflow]
	if f == nil {
		return
	}
	key := keyOf(t)
	before, again := f.begun[key]
	switch {
	case again && before.id == t.ID && before.attempt < t.Attempt, again && before.id != t.ID && before.try < t.Step.Try:
		b.repeat++
	case again:
		b.redone++
	default:
		b.times(f, key.name, now)
	}
	f.begun[key] = began{t.ID, t.Step.Try, t.Attempt, before.ended}
}

// times keeps how long the way to a handler was, that begins for the first time. It needs mu.
func (b *flowBooks) times(f *flowBook, handler string, now time.Time) {
	took := func(h *hdrhistogram.Histogram, from time.Time) {
		_ = h.RecordValue(min(now.Sub(from).Microseconds(), lateness.Ceiling)) // in range by this
	}
	if len(f.begun) == 0 {
		took(b.first, f.submitted)
	}
	if len(f.begun) == b.shape.tasks-1 {
		took(b.whole, f.submitted)
	}
	name, n := b.shape.needs(handler)
	if n == 0 {
		return
	}
	before := f.ended[name]
	if before.n < n {
		b.untimely++
		return
	}
	if !f.hopped[name] {
		f.hopped[name] = true
		took(b.hop, before.at)
	}
}

// end writes down that a handler ends.
func (b *flowBooks) end(t *sdk.Task, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.flows[t.Step.Workflow]
	if f == nil {
		return
	}
	key := keyOf(t)
	if f.begun[key].ended {
		return
	}
	state := f.begun[key]
	state.ended = true
	f.begun[key] = state
	f.ended[key.name] = ended{f.ended[key.name].n + 1, now}
	b.steps++
	b.last = now
	if f.left--; f.left == 0 {
		close(f.done)
	}
}

// ends is how many handlers have ended.
func (b *flowBooks) ends() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.steps
}

// unfinished is how many workflows have handlers that have not ended.
func (b *flowBooks) unfinished() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.flows {
		if f.left > 0 {
			n++
		}
	}
	return n
}

// read writes what is in the books to a line: rates since begun, and ways.
func (b *flowBooks) read(line *flowLine, begun time.Time) {
	b.readWays(line)
	b.mu.Lock()
	defer b.mu.Unlock()
	if took := b.last.Sub(begun).Seconds(); took > 0 {
		line.Seconds = result.Round(took, 3)
		line.StepsPerS, line.WorkflowsPerS = result.Round(float64(b.steps)/took, 1), result.Round(float64(b.steps)/float64(b.shape.tasks)/took, 1)
	}
}

// readWays writes how long each way was to a line, and what is broken.
func (b *flowBooks) readWays(line *flowLine) {
	b.mu.Lock()
	defer b.mu.Unlock()
	line.FirstMS, line.HopMS, line.WholeMS = lateness.Of(b.first), lateness.Of(b.hop), lateness.Of(b.whole)
	line.Repeat, line.Redone, line.Untimely = b.repeat, b.redone, b.untimely
}
