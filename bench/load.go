package bench

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// How producers call in batch mode.
const (
	batchSize    = 512
	batchCallers = 8 // batches in flight at a time
)

// load is what producers send in one run: n tasks made by make, size of them a
// call, callers calls at a time.
type load struct {
	n       int
	make    func(i int) Task
	size    int
	callers int
}

// newLoad is the load of a mode.
func newLoad(mode string, producers, n int, make func(int) Task) load {
	if mode == "single" {
		return load{n, make, 1, producers}
	}
	return load{n, make, batchSize, batchCallers}
}

// span is the time from the first call to the last answer.
type span struct{ from, to time.Time }

func (s span) rate(n int) float64 {
	if !s.to.After(s.from) {
		return 0
	}
	return float64(n) / s.to.Sub(s.from).Seconds()
}

// send makes all calls. The first error stops it: a producer that lost a call
// would make every figure of the run wrong.
func (l load) send(ctx context.Context, d Driver) (span, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var callers sync.WaitGroup
	var next atomic.Int64
	from := time.Now()
	for range l.callers {
		callers.Go(func() {
			if err := l.call(ctx, d, &next); err != nil {
				cancel(err)
			}
		})
	}
	callers.Wait()
	return span{from, time.Now()}, context.Cause(ctx)
}

// call is one caller: it takes the next tasks until there are none.
func (l load) call(ctx context.Context, d Driver, next *atomic.Int64) error {
	for {
		end := int(next.Add(int64(l.size)))
		begin := end - l.size
		if begin >= l.n {
			return nil
		}
		if err := d.Enqueue(ctx, l.tasks(begin, min(end, l.n))); err != nil {
			return err
		}
	}
}

func (l load) tasks(begin, end int) []Task {
	out := make([]Task, 0, end-begin)
	for i := begin; i < end; i++ {
		out = append(out, l.make(i))
	}
	return out
}
