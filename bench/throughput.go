package bench

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/bench/result"
)

// How many tasks each mode takes by default: enough for a few seconds.
const (
	batchTasks  = 500_000
	singleTasks = 60_000

	// standingTasks lie in the store during workloads that ask for no backlog. A
	// queue in use is never empty, and Redis keeps tiny sets in another form
	// that is twice as slow.
	standingTasks = 1_000
)

// throughput measures each mode: producers and worker at once, then producers
// alone, then the worker alone on what they left.
func (l *lab) throughput(ctx context.Context) error {
	for _, mode := range l.o.modes() {
		n := l.o.tasks(map[string]int{"batch": batchTasks, "single": singleTasks}[mode])
		line, err := l.throughputOf(ctx, mode, n)
		if err != nil {
			return err
		}
		if err := l.emit(line); err != nil {
			return err
		}
	}
	return nil
}

func (l *lab) throughputOf(ctx context.Context, mode string, n int) (result.Line, error) {
	line := l.line("throughput", n)
	line.Mode = mode
	warm := l.line("throughput", max(n/10, 1000))
	if err := l.host.work(ctx); err != nil {
		return line, err
	}
	if err := l.endToEnd(ctx, mode, &warm); err != nil {
		return line, err
	}
	if err := l.endToEnd(ctx, mode, &line); err != nil {
		return line, err
	}
	if err := l.host.pause(ctx); err != nil {
		return line, err
	}
	return line, l.apart(ctx, mode, &line)
}

// endToEnd runs producers and worker at once; CPU and memory are of this part.
func (l *lab) endToEnd(ctx context.Context, mode string, line *result.Line) error {
	m, n := l.maker(), line.Tasks
	if err := l.host.expect(ctx, m.run, n); err != nil {
		return err
	}
	before := l.usage()
	sent, err := newLoad(mode, l.o.Producers, n, func(i int) Task { return m.task(i, time.Time{}) }).send(ctx, l.driver)
	if err != nil {
		return err
	}
	r, err := l.await(ctx, m.run, n, 0)
	if err != nil {
		return err
	}
	line.CPU, line.RSS = l.usage().Minus(before), l.memory()
	line.CPUPer100k = result.Round(line.CPU.Sum()/float64(n)*1e5, 3)
	whole := span{sent.from, time.Unix(0, max(r.LastAck, sent.to.UnixNano()))}
	line.Seconds = result.Round(whole.to.Sub(whole.from).Seconds(), 3)
	line.EndToEndPerS = result.Round(whole.rate(r.Tasks), 1)
	return settle(line, r, n)
}

// apart runs the producers first and the worker afterwards.
func (l *lab) apart(ctx context.Context, mode string, line *result.Line) error {
	m, n := l.maker(), line.Tasks
	if err := l.host.expect(ctx, m.run, n); err != nil {
		return err
	}
	sent, err := newLoad(mode, l.o.Producers, n, func(i int) Task { return m.task(i, time.Time{}) }).send(ctx, l.driver)
	if err != nil {
		return err
	}
	from := time.Now()
	if err := l.host.work(ctx); err != nil {
		return err
	}
	r, err := l.await(ctx, m.run, n, 0)
	if err != nil {
		return err
	}
	line.EnqueuePerS = result.Round(sent.rate(n), 1)
	line.ProcessPerS = result.Round(span{from, time.Unix(0, r.LastAck)}.rate(r.Tasks), 1)
	line.Duplicate += r.Duplicate
	line.Repeat += r.Repeat
	line.Lost += n - r.Tasks
	return l.host.pause(ctx)
}
