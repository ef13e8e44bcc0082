package bench

import (
	"fmt"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	sdk "github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/bench/lateness"
)

// runBooks are the runs of schedules that came: each occurrence is one or none. It is safe
// for concurrent use.
type runBooks struct {
	begin time.Time
	every time.Duration

	mu       sync.Mutex // guards what follows
	runs     []map[int]cameRun
	n        int // occurrences that came
	late     *hdrhistogram.Histogram
	last     time.Time
	early    int
	doubled  int
	madeLate int
}

// cameRun is how an occurrence came last.
type cameRun struct {
	id      string
	attempt int
}

// newRunBooks are the books of schedules whose first occurrence is at or behind begin, and less than
// every behind it.
func newRunBooks(schedules int, begin time.Time, every time.Duration) *runBooks {
	b := &runBooks{begin: begin, every: every, runs: make([]map[int]cameRun, schedules), late: lateness.New()}
	for i := range b.runs {
		b.runs[i] = make(map[int]cameRun)
	}
	return b
}

// write writes down that a handler began.
func (b *runBooks) write(t *sdk.Task, at time.Time) {
	var schedule int
	if t.Run == nil {
		return
	}
	if _, err := fmt.Sscanf(t.Run.Schedule, scheduleName, &schedule); err != nil || schedule >= len(b.runs) {
		return
	}
	occurrence := int(t.Run.Occurrence.Sub(b.begin) / b.every)
	b.mu.Lock()
	defer b.mu.Unlock()
	before, again := b.runs[schedule][occurrence]
	switch {
	case again && (before.id != t.ID || before.attempt >= t.Attempt):
		b.doubled++
	case !again:
		b.n++
		_ = b.late.RecordValue(max(0, at.Sub(t.Run.Occurrence).Microseconds())) // of more than it has room for it keeps none
		if t.CreatedAt.After(t.Due) {
			b.madeLate++
		}
	}
	if at.Before(t.Due) {
		b.early++
	}
	if at.After(b.last) {
		b.last = at
	}
	b.runs[schedule][occurrence] = cameRun{t.ID, t.Attempt}
}

// came is how many occurrences have.
func (b *runBooks) came() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.n
}

// read writes what is in the books to a line.
func (b *runBooks) read(line *scheduleLine) {
	b.mu.Lock()
	defer b.mu.Unlock()
	line.Runs, line.LateMS = b.n, lateness.Of(b.late)
	line.Early, line.Doubled, line.MadeLate = b.early, b.doubled, b.madeLate
}
