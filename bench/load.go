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
	every   time.Duration // pause from one call to the next, of all callers together; 0: none
}

// newLoad is the load of a mode.
func newLoad(mode string, producers, n int, make func(int) Task) load {
	if mode == "single" {
		return load{n: n, make: make, size: 1, callers: producers}
	}
	return load{n: n, make: make, size: batchSize, callers: batchCallers}
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
			if err := l.call(ctx, d, from, &next); err != nil {
				cancel(err)
			}
		})
	}
	callers.Wait()
	return span{from, time.Now()}, context.Cause(ctx)
}

// call is one caller: it takes the next tasks until there are none.
func (l load) call(ctx context.Context, d Driver, from time.Time, next *atomic.Int64) error {
	for {
		end := int(next.Add(int64(l.size)))
		begin := end - l.size
		if begin >= l.n {
			return nil
		}
		if err := l.pace(ctx, from, begin); err != nil {
			return err
		}
		if err := d.Enqueue(ctx, l.tasks(begin, min(end, l.n))); err != nil {
			return err
		}
	}
}

// pace waits for the moment of the call that begins with a task. A caller that is late
// calls at once, so that the calls together keep their rate.
func (l load) pace(ctx context.Context, from time.Time, begin int) error {
	if l.every == 0 {
		return nil
	}
	pause := time.NewTimer(time.Until(from.Add(time.Duration(begin/l.size) * l.every)))
	defer pause.Stop()
	select {
	case <-pause.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l load) tasks(begin, end int) []Task {
	out := make([]Task, 0, end-begin)
	for i := begin; i < end; i++ {
		out = append(out, l.make(i))
	}
	return out
}
