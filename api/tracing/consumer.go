package tracing

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/ddq-io/ddq/api/worker"
)

// Middleware makes a span of each attempt, in which the handler runs: it has it in its context. What
// the handler enqueues with its ack carries it, too. It should be outermost.
func Middleware(cfg Config) worker.Middleware {
	p := processor{cfg.tracer(), cfg.join(), cfg.Settle}
	return func(next worker.Handler) worker.Handler {
		return worker.HandlerFunc(func(ctx context.Context, t worker.Task) error { return p.handle(ctx, t, next) })
	}
}

// processor makes the spans of attempts.
type processor struct {
	tracer trace.Tracer
	join   time.Duration
	settle bool
}

func (p processor) handle(ctx context.Context, t worker.Task, next worker.Handler) error {
	ctx, span := p.begin(ctx, &t)
	name, returned := opNack, false
	settle := p.settle && span.IsRecording() // asked now: one that has ended is not recording
	defer func() {
		if !returned { // it panicked, which is the worker's to say
			span.SetStatus(codes.Error, "")
			span.SetAttributes(keyError.String("panic"))
		}
		span.End()
		if settle {
			p.settling(ctx, name, t)
		}
	}()
	var own worker.Trace
	own.Parent, own.State = Context(ctx)
	t.TraceNext(own)
	err := next.Handle(ctx, t)
	if err == nil || errors.Is(err, worker.ErrSuspended) {
		name = opAck
	}
	if returned = true; failed(err) {
		fail(span, err)
	}
	return err
}

// settling makes a span of the end of an attempt, from now until the server has answered.
func (p processor) settling(ctx context.Context, name string, t worker.Task) {
	began := time.Now()
	t.OnSettled(func(kind worker.EventKind) {
		_, span := p.tracer.Start(ctx, name+" "+t.Topic, trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(began),
			trace.WithAttributes(attempt(name, &t)...))
		if kind == worker.Lost {
			span.SetStatus(codes.Error, "")
			span.SetAttributes(keyError.String(kind.String()))
		}
		span.End()
	})
}

// failed reports whether an attempt did; one that gave its task back, or waits for others, has not.
func failed(err error) bool {
	return err != nil && !errors.Is(err, worker.ErrReleased) && !errors.Is(err, worker.ErrSuspended)
}

// begin starts the span of an attempt: under that of the delivery, where the server made one.
func (p processor) begin(ctx context.Context, t *worker.Task) (context.Context, trace.Span) {
	attributes := attempt(opProcess, t)
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer)}
	sent, delivery := contextOf(t.Trace.Parent, t.Trace.State), contextOf(t.Trace.Delivery, t.Trace.State)
	if sent.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: sent}))
	}
	switch {
	case delivery.IsValid():
		ctx = trace.ContextWithRemoteSpanContext(ctx, delivery)
	case sent.IsValid() && p.joins(t, sent):
		ctx = trace.ContextWithRemoteSpanContext(ctx, sent)
	case sent.IsValid():
		options = append(options, trace.WithNewRoot())
		attributes = append(attributes, keyCreated.String(t.CreatedAt.UTC().Format(time.RFC3339Nano)))
	}
	return p.tracer.Start(ctx, opProcess+" "+t.Topic, append(options, trace.WithAttributes(attributes...))...)
}

// joins reports whether an attempt is in the trace of the send. A step is not in that of the step before
// it: a workflow may last for a year. That a trace is recorded is for its
// producer to say: where it is not, the attempt is in it whenever it is due.
func (p processor) joins(t *worker.Task, sent trace.SpanContext) bool {
	return t.Step == nil && t.Due.Sub(t.CreatedAt) <= p.join || !sent.IsSampled()
}
