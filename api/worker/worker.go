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
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// Worker takes due tasks of one or more topics and runs a handler for each. It
// owns Concurrency goroutines and a few for each topic while Run runs.
type Worker struct {
	cfg     *settings
	handler Handler
	queue   chan *held // delivered, not started; has room for all that may be in flight
	topics  []*topicWorker
	pool    sync.WaitGroup
	used    atomic.Bool
	events  events
	fleet   *fleet // nil unless Direct
}

// New returns a worker over conn, which stays the caller's. The handler may be
// a *Mux.
func New(conn grpc.ClientConnInterface, cfg Config, h Handler) *Worker {
	topics := []string{cfg.Topic}
	if mux, ok := h.(*Mux); ok && cfg.Topic == "" {
		topics = mux.topics()
	}
	own := cfg.settings()
	w := &Worker{
		cfg:     own,
		handler: wrap(h, cfg.Middleware),
		queue:   make(chan *held, len(topics)*max(own.MaxInFlight, 0)),
		events:  events{observe: own.Observe},
	}
	if cfg.Direct {
		w.fleet = newFleet(conn, own)
	}
	rpc := ddqv1.NewDelayQueueServiceClient(conn)
	for _, topic := range topics {
		w.topics = append(w.topics, &topicWorker{
			sub:    newSubscription(own, topic, w.queue, &w.events),
			rpc:    rpc,
			cfg:    own,
			events: &w.events,
			fleet:  w.fleet,
		})
	}
	return w
}

// Run takes tasks until ctx ends. Then it gives back what no handler has
// started, waits for the handlers, for up to the grace period, and returns once
// the server has answered the last settlement. It returns nil after that, an
// error when handlers or settlements were left behind, and earlier with an
// error when the server refuses the subscription for good. A topic that does not
// exist, where servers make none by themselves, is no such refusal, nor is one that is
// deleted: Run says so at warn and waits for it, and takes the tasks of other topics
// meanwhile. A Worker runs once.
func (w *Worker) Run(ctx context.Context) error {
	if w.used.Swap(true) {
		return errors.New("a worker runs only once")
	}
	if len(w.topics) == 0 {
		return errors.New("a worker needs a topic")
	}
	if w.cfg.MaxInFlight < 0 {
		return errors.New("max in flight must not be negative")
	}
	base := context.WithoutCancel(ctx) // handlers outlive ctx by the grace period
	for range w.cfg.Concurrency {
		w.pool.Go(func() { w.work(base) })
	}
	err := w.subscribe(ctx)
	close(w.queue)
	if w.idle() {
		w.pool.Wait()
	}
	return err
}

// Stats returns the counts so far.
func (w *Worker) Stats() Stats { return w.events.stats() }

// subscribe runs all subscriptions; the failure of one ends the others.
func (w *Worker) subscribe(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(w.topics))
	var looking, all sync.WaitGroup
	defer looking.Wait()
	if w.fleet != nil {
		looks, enough := context.WithCancel(context.WithoutCancel(ctx))
		defer enough()
		looking.Go(func() { w.fleet.run(looks) })
	}
	for i, t := range w.topics {
		all.Go(func() {
			defer cancel()
			if err := t.run(ctx); err != nil {
				errs[i] = fmt.Errorf("topic %s: %w", t.sub.topic, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// idle reports whether every handler has returned.
func (w *Worker) idle() bool {
	for _, t := range w.topics {
		if !t.sub.idle() {
			return false
		}
	}
	return true
}

// work runs handlers, one after the other, until the queue is closed.
func (w *Worker) work(base context.Context) {
	finished := false
	defer func() {
		if !finished { // the handler ended its goroutine; this one's place is taken
			w.pool.Go(func() { w.work(base) })
		}
	}()
	for h := range w.queue {
		w.process(base, h)
	}
	finished = true
}

// errGone is the outcome of a handler that neither returned nor panicked.
var errGone = errors.New("the handler ended its goroutine")

// process runs the handler for h and settles it, however the handler ends.
func (w *Worker) process(base context.Context, h *held) {
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
			w.cfg.Logger.Error("handler panicked", "topic", h.task.Topic, "task", h.task.ID,
				"attempt", h.task.Attempt, "err", err, slog.String("stack", string(debug.Stack())))
		}
		h.sub.finish(ctx, h, err)
	}()
	if h.canceled.Load() {
		cancel(ErrCanceled)
	}
	ctx, done := w.limited(ctx, h)
	defer done()
	err = w.handler.Handle(ctx, h.task)
}

// limited gives ctx the handler timeout, the task's own or else the worker's, if there is
// one. A handler that still runs cancelGrace after it loses its task.
func (w *Worker) limited(ctx context.Context, h *held) (limited context.Context, done func()) {
	d := cmp.Or(h.task.HandlerTimeout, w.cfg.HandlerTimeout)
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
