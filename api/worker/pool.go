package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"
)

// pool runs handlers. It owns Config.Concurrency goroutines from start until the queue is
// closed and the handlers have returned.
type pool struct {
	cfg     *settings
	handler Handler
	queue   chan *held // delivered, not started; has room for all that may be in flight
	running sync.WaitGroup
}

// start begins to take tasks. Handlers have contexts of base.
func (p *pool) start(base context.Context) {
	for range p.cfg.Concurrency {
		p.running.Go(func() { p.work(base) })
	}
}

// work runs handlers, one after the other, until the queue is closed.
func (p *pool) work(base context.Context) {
	finished := false
	defer func() {
		if !finished { // the handler ended its goroutine; this one's place is taken
			p.running.Go(func() { p.work(base) })
		}
	}()
	for h := range p.queue {
		p.process(base, h)
	}
	finished = true
}

// errGone is the outcome of a handler that neither returned nor panicked.
var errGone = errors.New("the handler ended its goroutine")

// process runs the handler for h and settles it, however the handler ends.
func (p *pool) process(base context.Context, h *held) {
	ctx, cancel := context.WithCancelCause(base) // base cannot end, so this takes no lock
	defer cancel(nil)
	if !h.run(cancel) {
		h.sub.drop()
		return
	}
	err := errGone
	defer func() {
		if v := recover(); v != nil {
			err = &panicked{v, panicPlace()}
			p.cfg.Logger.Error("handler panicked", "topic", h.task.Topic, "task", h.task.ID,
				"attempt", h.task.Attempt, "err", err, slog.String("stack", string(debug.Stack())))
		}
		h.sub.finish(ctx, h, err)
	}()
	if h.canceled.Load() {
		cancel(ErrCanceled)
	}
	ctx, done := p.limited(ctx, h)
	defer done()
	if err = p.handler.Handle(ctx, h.task); errors.Is(err, errNoHandler) {
		p.cfg.Logger.Warn("no handler for a step", "topic", h.task.Topic, "task", h.task.ID, "step", h.task.Step.name())
	}
}

// limited gives ctx the handler timeout, the task's own or else the worker's, if there is
// one. A handler that still runs cancelGrace after it loses its task.
func (p *pool) limited(ctx context.Context, h *held) (limited context.Context, done func()) {
	d := cmp.Or(h.task.HandlerTimeout, p.cfg.HandlerTimeout)
	if d <= 0 {
		return ctx, func() {}
	}
	cause := fmt.Errorf("%w after %v", ErrHandlerTimeout, d)
	ctx, cancel := context.WithTimeoutCause(ctx, d, cause)
	overdue := time.AfterFunc(d+cancelGrace, func() { h.sub.giveUp(h, cause) })
	return ctx, func() { overdue.Stop(); cancel() }
}

// panicPlace returns where the panic being recovered was raised.
func panicPlace() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	raised := false
	for {
		f, more := frames.Next()
		if raised && !strings.HasPrefix(f.Function, "runtime.") {
			return fmt.Sprintf("%s:%d", f.File, f.Line)
		}
		raised = raised || f.Function == "runtime.gopanic"
		if !more {
			return "unknown"
		}
	}
}
