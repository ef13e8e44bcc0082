package spans

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Requests makes the spans of requests to the API. It is a rest.Spans.
type Requests struct{ tracer trace.Tracer }

// Requests returns what makes the spans of requests.
func (s *Spans) Requests() *Requests { return &Requests{s.calls.Tracer(scope)} }

// Begin begins the span of a request to a route, below that of its caller. end is nil when there is
// none.
func (r *Requests) Begin(request *http.Request, route string) (ctx context.Context, end func(status int)) {
	ctx = propagation.TraceContext{}.Extract(request.Context(), propagation.HeaderCarrier(request.Header))
	ctx, span := r.tracer.Start(ctx, request.Method+" "+route, trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(keyHTTPMethod.String(request.Method), keyHTTPRoute.String(route)))
	if !span.IsRecording() {
		return request.Context(), nil
	}
	return ctx, func(status int) {
		span.SetAttributes(keyHTTPStatus.Int(status))
		if status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}
