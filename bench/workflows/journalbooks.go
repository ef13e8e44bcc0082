package workflows

import (
	"context"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/ddq-io/ddq/bench/lateness"
	"github.com/ddq-io/ddq/bench/result"
)

// journalBooks are the names that were kept. It is safe for concurrent use.
type journalBooks struct {
	names int // of each task

	mu        sync.Mutex // guards what follows
	kept      [][]bool   // by task and name
	ended     []bool
	left      int // tasks that have not ended
	marks     int // names that were kept
	forgotten int
	once      *hdrhistogram.Histogram
	last      time.Time
	done      chan struct{} // closed when none is left
}

func newJournalBooks(tasks, names int) *journalBooks {
	b := &journalBooks{
		names: names, kept: make([][]bool, tasks), ended: make([]bool, tasks), left: tasks, once: lateness.New(), done: make(chan struct{}),
	}
	for i := range b.kept {
		b.kept[i] = make([]bool, names)
	}
	return b
}

// write writes down that a name of a task has a value: whether it ran for that, whether the value is
// its own, and how long it took.
func (b *journalBooks) write(task, name int, ran, own bool, took time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ran && b.kept[task][name] || !own {
		b.forgotten++
	}
	b.kept[task][name] = true
	if ran {
		b.marks++
		_ = b.once.RecordValue(min(max(1, took.Microseconds()), lateness.Ceiling)) // in range by this
	}
}

// end writes down that all names of a task have a value.
func (b *journalBooks) end(task int, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended[task] {
		return
	}
	b.ended[task], b.last = true, now
	if b.left--; b.left == 0 {
		close(b.done)
	}
}

// wait waits until all tasks have ended, or no name was kept for too long.
func (b *journalBooks) wait(ctx context.Context) error {
	look := time.NewTicker(flowEnd)
	defer look.Stop()
	for before := -1; ; {
		select {
		case <-b.done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
			b.mu.Lock()
			now := b.marks
			b.mu.Unlock()
			if now == before {
				return nil
			}
			before = now
		}
	}
}

// read writes what is in the books to a line.
func (b *journalBooks) read(line *journalLine, begun time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if took := b.last.Sub(begun).Seconds(); took > 0 {
		line.Seconds, line.CheckpointsPerS = result.Round(took, 3), result.Round(float64(b.marks)/took, 1)
	}
	line.Checkpoints, line.OnceMS = b.marks, lateness.Of(b.once)
	line.Forgotten, line.NeverEnded = b.forgotten, b.left
}
