package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ddq-io/ddq/bench/result"
	"github.com/ddq-io/ddq/bench/tally"
)

const (
	restartTasks = 20_000
	// restartSpan is the time over which the tasks of a restart become due; the
	// server is killed in its middle.
	restartSpan = 10 * time.Second
	// restartHold is how long handlers take, so that tasks are held at the kill.
	restartHold = 20 * time.Millisecond
	// restartLead is how long before its due time a task is enqueued. A call that
	// the kill left unanswered is repeated until then: later, its task may be
	// delivered and gone already, and the repeat would rightly make a new one.
	restartLead = 5 * time.Second
	// restartBatch is small, so that many calls are unanswered at the kill.
	restartBatch = 16
)

// restart kills the server with kill -9 while tasks are enqueued, wait, are held
// and are settled, starts it again on the same store, and checks the ledger.
func (l *lab) restart(ctx context.Context) error {
	if l.inst.Restart == nil || l.inst.Pending == nil {
		return errors.New("restart: needs a server that the bench starts itself, without --addr")
	}
	pending := l.o.backlog(backlogTasks)
	if _, err := l.preload(ctx, pending); err != nil {
		return err
	}
	if err := l.warm(ctx); err != nil {
		return err
	}
	n := l.o.tasks(restartTasks)
	t := &trial{lab: l, n: n, maker: l.maker(), tally: tally.New(n)}
	line, err := t.run(ctx)
	if err != nil {
		return err
	}
	left, err := l.inst.Pending(ctx)
	if err != nil {
		return fmt.Errorf("restart: count what is left: %w", err)
	}
	line.Lost += max(0, pending-int(left))
	return l.emit(line)
}

// trial is one restart under load.
type trial struct {
	*lab
	n     int
	maker *maker
	base  time.Time // the first due time

	mu    sync.Mutex   // guards tally
	tally *tally.Tally // acknowledged enqueues
}

func (t *trial) run(ctx context.Context) (result.Line, error) {
	line := t.line("restart", t.n)
	if err := t.host.expect(ctx, t.maker.run, t.n); err != nil {
		return line, err
	}
	before, from := t.usage(), time.Now()
	t.base = from.Add(restartLead + time.Second).Truncate(time.Millisecond)

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var producers sync.WaitGroup
	producers.Go(func() { t.produce(ctx, cancel) })
	defer producers.Wait()
	defer cancel(nil)

	started, err := t.kill(ctx)
	if err != nil {
		return line, err
	}
	r, err := t.await(ctx, t.maker.run, t.n, restartLead+restartSpan)
	if err != nil {
		return line, err
	}
	producers.Wait()
	line.CPU, line.RSS = t.usage().Minus(before), t.memory()
	line.Seconds = result.Round(time.Since(from).Seconds(), 3)
	if r.FirstMark != 0 {
		line.FirstMS = result.Round(float64(r.FirstMark-started.UnixNano())/1e6, 3)
	}
	if err := settle(&line, r, t.n); err != nil {
		return line, err
	}
	line.Lost = t.tally.Lost(r.Delivered)
	return line, t.host.pause(ctx)
}

// kill waits for the middle of the run and restarts the server. Deliveries that
// the worker still had from the old server do not count as the first: only
// tasks due after the kill do.
func (t *trial) kill(ctx context.Context) (started time.Time, err error) {
	select {
	case <-ctx.Done():
		return time.Time{}, context.Cause(ctx)
	case <-time.After(time.Until(t.base.Add(restartSpan / 2))):
	}
	var markErr error
	started, err = t.inst.Restart(ctx, func() { markErr = t.host.mark(time.Now()) })
	return started, errors.Join(err, markErr)
}

// produce enqueues all tasks, paced so that it lasts through the kill.
func (t *trial) produce(ctx context.Context, cancel context.CancelCauseFunc) {
	const callers = 8
	var wait sync.WaitGroup
	for c := range callers {
		wait.Go(func() {
			for i := c * restartBatch; i < t.n; i += callers * restartBatch {
				if err := t.enqueue(ctx, i, min(i+restartBatch, t.n)); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	wait.Wait()
}

// enqueue sends tasks [from, to) at restartLead before they are due, and again
// until it is answered: with the same ids a repeat does no harm.
func (t *trial) enqueue(ctx context.Context, from, to int) error {
	tasks := make([]Task, 0, to-from)
	for i := from; i < to; i++ {
		tasks = append(tasks, t.maker.task(i, t.due(i)))
	}
	pause := time.Until(t.due(from).Add(-restartLead))
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
		err := t.driver.Enqueue(ctx, tasks)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if time.Now().After(t.due(from)) {
			return fmt.Errorf("the server did not take tasks again within %v: %w", restartLead, err)
		}
		pause = 50 * time.Millisecond
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := from; i < to; i++ {
		t.tally.Acknowledge(i)
	}
	return nil
}

// due spreads the tasks evenly over the run.
func (t *trial) due(i int) time.Time {
	return t.base.Add(restartSpan * time.Duration(i) / time.Duration(t.n)).Truncate(time.Millisecond)
}
