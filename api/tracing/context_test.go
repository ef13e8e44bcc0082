package tracing_test

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/ddq-io/ddq/api/tracing"
)

// A context is written as the propagator of OpenTelemetry writes it, in two allocations.
func TestContextIsThatOfThePropagator(t *testing.T) {
	state, err := trace.ParseTraceState("a=1,b=2")
	if err != nil {
		t.Fatal(err)
	}
	for _, flags := range []trace.TraceFlags{0, trace.FlagsSampled, 0xff} {
		for _, state := range []trace.TraceState{{}, state} {
			ctx := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: flags, TraceState: state}))
			want := propagation.MapCarrier{}
			propagation.TraceContext{}.Inject(ctx, want)
			if parent, state := tracing.Context(ctx); parent == "" || parent != want["traceparent"] || state != want["tracestate"] {
				t.Errorf("%q with %q, want %v", parent, state, want)
			}
		}
	}
	ctx := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}}))
	if n := testing.AllocsPerRun(100, func() { tracing.Context(ctx) }); n > 2 {
		t.Errorf("%v allocations", n)
	}
	if parent, state := tracing.Context(context.Background()); parent != "" || state != "" {
		t.Errorf("no span is %q with %q", parent, state)
	}
}
