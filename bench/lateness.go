package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/ddq-io/ddq/bench/result"
)

// timedTasks is how many tasks lateness and herd take by default.
const timedTasks = 20_000

// timedLead is how far ahead of its first due time a run is enqueued, with more
// for each task so that slow systems are done before it.
func timedLead(n int) time.Duration {
	return 5*time.Second + time.Duration(n)*time.Second/10_000
}

// lateness measures tasks due evenly over a while.
func (l *lab) lateness(ctx context.Context) error {
	n := l.o.tasks(timedTasks)
	line, _, err := l.timed(ctx, "lateness", n, 5*time.Second, func(i int) time.Duration {
		return l.o.For * time.Duration(i) / time.Duration(n)
	})
	if err != nil {
		return err
	}
	return l.emit(line)
}

// herd measures tasks due at one instant.
func (l *lab) herd(ctx context.Context) error {
	n := l.o.tasks(timedTasks)
	lead := timedLead(n)
	line, sent, err := l.timed(ctx, "herd", n, lead, func(int) time.Duration { return 0 })
	if err != nil {
		return err
	}
	if took := sent.to.Sub(sent.from); took > lead {
		return fmt.Errorf("herd: enqueueing took %v, longer than the %v before the instant: take fewer --tasks", took, lead)
	}
	return l.emit(line)
}

// timed enqueues n tasks in batches, each due lead and then offset(i) from now,
// and measures how late they start.
func (l *lab) timed(ctx context.Context, workload string, n int, lead time.Duration, offset func(int) time.Duration) (result.Line, span, error) {
	if err := l.warm(ctx); err != nil {
		return result.Line{}, span{}, err
	}
	line, sent, err := l.due(ctx, workload, n, lead, offset)
	if err != nil {
		return line, sent, err
	}
	return line, sent, l.host.pause(ctx)
}

// due is the measured part of timed, of a worker that is at work.
func (l *lab) due(ctx context.Context, workload string, n int, lead time.Duration, offset func(int) time.Duration) (result.Line, span, error) {
	line, m := l.line(workload, n), l.maker()
	line.Mode = "batch"
	if err := l.host.expect(ctx, m.run, n); err != nil {
		return line, span{}, err
	}
	before, from := l.usage(), time.Now()
	base := from.Add(lead).Truncate(time.Millisecond)
	sent, err := newLoad("batch", l.o.Producers, n, func(i int) Task {
		return m.task(i, base.Add(offset(i)).Truncate(time.Millisecond))
	}).send(ctx, l.driver)
	if err != nil {
		return line, sent, err
	}
	r, err := l.await(ctx, m.run, n, lead+l.o.For)
	if err != nil {
		return line, sent, err
	}
	line.CPU, line.RSS = l.usage().Minus(before), l.memory()
	line.CPUPer100k = result.Round(line.CPU.Sum()/float64(n)*1e5, 3)
	line.EnqueuePerS = result.Round(sent.rate(n), 1)
	if r.Tasks > 0 {
		line.Seconds = result.Round(time.Unix(0, max(r.LastStart, r.LastAck)).Sub(from).Seconds(), 3)
		line.FirstMS = result.Round(float64(r.FirstStart-base.UnixNano())/1e6, 3)
		line.LastMS = result.Round(float64(r.LastStart-base.UnixNano()-int64(offset(n-1)))/1e6, 3)
	}
	return line, sent, settle(&line, r, n)
}

// warm opens the worker's session and passes tasks through every party once.
func (l *lab) warm(ctx context.Context) error {
	if err := l.host.work(ctx); err != nil {
		return err
	}
	line := l.line("warm-up", l.o.tasks(timedTasks))
	return l.endToEnd(ctx, "batch", &line)
}
