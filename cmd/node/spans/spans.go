package spans

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/server/delivery"
	"github.com/ddq-io/ddq/store"
)

// Config says what is recorded, and where it goes.
type Config struct {
	// Endpoint is the collector, such as https://collector:4317. Over http it is not encrypted.
	Endpoint string

	// Sample is the share of the tasks without a trace context for which a trace is begun: 0 to 1.
	Sample float64

	// Join is how long after it was enqueued a task may be due to be in the trace of its producer.
	Join time.Duration

	// MaxPerSecond bounds the spans that are begun; what is over is counted.
	MaxPerSecond int

	Node, Version string // as spans name them
}

// Spans makes the spans of a node: of its deliveries, of calls and of requests. It is a delivery.Spans. It owns the goroutine of its queue, gone
// after Close.
type Spans struct {
	cfg      Config
	provider *sdk.TracerProvider // of deliveries, which are picked before they begin
	calls    *sdk.TracerProvider // of calls and requests, picked by its sampler
	tracer   trace.Tracer
	pace     *rate.Limiter
	dropped  drops
}

const scope = "github.com/ddq-io/ddq"

// New returns spans that go to the endpoint, which need not be in reach. Metrics go to reg.
func New(cfg Config, log *slog.Logger, reg registerer) (*Spans, error) {
	dropped, err := newDrops(reg)
	if err != nil {
		return nil, err
	}
	out, err := newExport(cfg.Endpoint, dropped, log)
	if err != nil {
		return nil, err
	}
	return to(out, cfg, dropped)
}

// to returns spans that a processor takes.
func to(out sdk.SpanProcessor, cfg Config, dropped drops) (*Spans, error) {
	about, err := resourceOf(cfg)
	if err != nil {
		return nil, err
	}
	s := &Spans{cfg: cfg, pace: rate.NewLimiter(rate.Limit(cfg.MaxPerSecond), cfg.MaxPerSecond), dropped: dropped}
	s.provider = sdk.NewTracerProvider(sdk.WithSpanProcessor(out), sdk.WithSampler(sdk.AlwaysSample()), sdk.WithResource(about))
	s.calls = sdk.NewTracerProvider(sdk.WithSpanProcessor(out), sdk.WithResource(about),
		sdk.WithSampler(paced{sdk.ParentBased(sdk.TraceIDRatioBased(cfg.Sample)), s}))
	s.tracer = s.provider.Tracer(scope)
	return s, nil
}

// closeTimeout is how long the last spans may take at the end.
const closeTimeout = 2 * time.Second

// Close sends what waits, for a while, and drops the rest. It may be called on nil.
func (s *Spans) Close(ctx context.Context) {
	if s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	_ = s.provider.Shutdown(ctx) // what it did not send is lost, as ever
}

// Begin begins the spans of a frame that is about to be written, and puts their contexts into it. The
// function that it returns ends them; it is nil when there are none.
func (s *Spans) Begin(tasks []delivery.Handed, frame []*ddqv1.Delivery) (end func(sent bool)) {
	var open []begun
	for i := range tasks {
		if s.wants(tasks[i].Task.Trace) {
			b := s.begin(&tasks[i])
			frame[i].Traceparent = parentOf(b.span)
			open = append(open, b)
		}
	}
	if open == nil {
		return nil
	}
	return func(sent bool) {
		now := time.Now()
		for i := range open {
			open[i].end(now, sent)
		}
	}
}

// wants reports whether the delivery of a task with a trace context, nil for none, gets a span: its
// producer decides. Of those without, some are picked.
func (s *Spans) wants(t *store.Trace) bool {
	if t != nil && !t.Sampled() || t == nil && (s.cfg.Sample <= 0 || rand.Float64() >= s.cfg.Sample) {
		return false
	}
	return s.takes()
}

// takes reports whether another span may begin in this second, and counts one that may not.
func (s *Spans) takes() bool {
	if !s.pace.Allow() {
		s.dropped.rate.Inc()
		return false
	}
	return true
}

// begun is the span of a delivery that is not sent yet.
type begun struct {
	span trace.Span
	due  time.Time
}

func (s *Spans) begin(d *delivery.Handed) begun {
	t, ctx := d.Task, context.Background()
	due := t.Due.Time()
	if now := time.Now(); due.After(now) { // by the clock of this machine
		due = now
	}
	attributes := s.attributes(d)
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindInternal), trace.WithTimestamp(due)}
	if t.Trace != nil {
		from := contextOf(t.Trace)
		options = append(options, trace.WithLinks(trace.Link{SpanContext: from}))
		if t.StepOf == nil && t.Due.Sub(t.Created) <= s.cfg.Join { // a workflow may last for a year
			ctx = trace.ContextWithRemoteSpanContext(ctx, from)
		} else {
			attributes = append(attributes, keyCreated.String(t.Created.Time().Format(time.RFC3339Nano)))
		}
	}
	_, span := s.tracer.Start(ctx, operation+" "+d.Topic, append(options, trace.WithAttributes(attributes...))...)
	span.AddEvent("held", trace.WithTimestamp(d.At))
	return begun{span, due}
}

// end ends a span at the moment its frame was written, or could not be.
func (b *begun) end(now time.Time, sent bool) {
	b.span.SetAttributes(keyLateness.Int64(now.Sub(b.due).Milliseconds()))
	if !sent {
		b.span.SetStatus(codes.Error, "not sent")
	}
	b.span.End(trace.WithTimestamp(now))
}
