package tracing

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/ddq-io/ddq/api/client"
)

// Config says how spans are made. The zero value works.
type Config struct {
	// Provider is where spans are made. Defaults to the global one of OpenTelemetry, as it is when
	// the Client or the Middleware is made.
	Provider trace.TracerProvider

	// Join is how long after it was enqueued a task may be due for its attempts to be in the trace of
	// the send. Those of other tasks begin a trace each, with a link. A longer one makes traces that
	// few backends show whole. Defaults to a minute; negative: none is.
	Join time.Duration

	// Settle makes a span of the end of each attempt, too: from when the handler returned until the
	// server answered to its ack or nack. One whose attempt is not recorded has none. Defaults to none.
	Settle bool
}

const scope = "github.com/ddq-io/ddq/api/tracing"

func (c Config) tracer() trace.Tracer {
	if c.Provider == nil {
		c.Provider = otel.GetTracerProvider()
	}
	return c.Provider.Tracer(scope)
}

func (c Config) join() time.Duration {
	if c.Join == 0 {
		return time.Minute
	}
	return c.Join
}

// The headers of W3C Trace Context, as the propagator of OpenTelemetry writes them.
const (
	parentHeader = "traceparent"
	stateHeader  = "tracestate"
)

// Context returns the trace context of the span in ctx, empty when there is none. It is what
// client.Config.Trace wants.
func Context(ctx context.Context) (traceparent, tracestate string) {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return "", ""
	}
	var h headers
	propagation.TraceContext{}.Inject(ctx, &h)
	return h.parent, h.state
}

// contextOf reads a trace context; an invalid one where there is none.
func contextOf(traceparent, tracestate string) trace.SpanContext {
	if traceparent == "" {
		return trace.SpanContext{}
	}
	h := headers{traceparent, tracestate}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), &h))
}

// headers are what a propagator reads and writes, without a map for each task.
type headers struct{ parent, state string }

// Get returns a header.
func (h *headers) Get(key string) string {
	switch key {
	case parentHeader:
		return h.parent
	case stateHeader:
		return h.state
	}
	return ""
}

// Set writes a header.
func (h *headers) Set(key, value string) {
	switch key {
	case parentHeader:
		h.parent = value
	case stateHeader:
		h.state = value
	}
}

// Keys are the headers that there are.
func (h *headers) Keys() []string { return []string{parentHeader, stateHeader} }

// fail marks a span of something that failed, by the kind of the error alone: its text may have
// what a task has.
func fail(span trace.Span, err error) {
	kind := "error"
	var refused *client.Error
	switch {
	case errors.As(err, &refused) && refused.Reason != "":
		kind = refused.Reason
	case errors.As(err, &refused):
		kind = refused.Code.String()
	case errors.Is(err, context.Canceled):
		kind = "canceled"
	case errors.Is(err, context.DeadlineExceeded):
		kind = "timeout"
	}
	span.SetStatus(codes.Error, "")
	span.SetAttributes(keyError.String(kind))
}
