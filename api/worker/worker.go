package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// Worker takes due tasks of one or more topics and runs a handler for each. It
// owns Concurrency goroutines and a few for each topic while Run runs.
//
// Its pool runs the handlers. Each topic has a topicWorker, which keeps a subscription
// connected by sessions; the subscription is the state of the topic's tasks here, and tells
// sessions by their links what to say.
type Worker struct {
	cfg    *settings
	pool   pool
	topics []*topicWorker
	used   atomic.Bool
	events events
	fleet  *fleet // nil unless Direct
}

// New returns a worker over conn, which stays the caller's. The handler may be
// a *Mux. An interceptor of conn must not keep the frames that it sees: the next
// one is read into the same message.
func New(conn grpc.ClientConnInterface, cfg Config, h Handler) *Worker {
	topics := []string{cfg.Topic}
	if mux, ok := h.(*Mux); ok && cfg.Topic == "" {
		topics = mux.topics()
	}
	own := cfg.settings()
	w := &Worker{
		cfg: own,
		pool: pool{
			cfg:     own,
			handler: decoding(cfg.Codec, wrap(h, cfg.Middleware)),
			queue:   make(chan *held, len(topics)*max(own.MaxInFlight, 0)),
		},
		events: events{observe: own.Observe},
	}
	if cfg.Direct {
		w.fleet = newFleet(conn, own)
	}
	rpc := ddqv1.NewDelayQueueServiceClient(conn)
	for _, topic := range topics {
		sub := newSubscription(own, topic, w.pool.queue, &w.events)
		sub.rpc, sub.flows = rpc, ddqv1.NewWorkflowServiceClient(conn)
		w.topics = append(w.topics, &topicWorker{
			sub:    sub,
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
// error when the server refuses the subscription for good, which it does not while credentials that
// counted before do not for up to 3 seconds. A topic that does not
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
	w.pool.start(context.WithoutCancel(ctx)) // handlers outlive ctx by the grace period
	err := w.subscribe(ctx)
	close(w.pool.queue)
	if w.idle() {
		w.pool.running.Wait()
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
