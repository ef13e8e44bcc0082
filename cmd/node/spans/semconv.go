package spans

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/trace"

	"github.com/ddq-io/ddq/api/server/delivery"
	"github.com/ddq-io/ddq/api/wire"
	"github.com/ddq-io/ddq/store"
)

// The semantic conventions of OpenTelemetry for messaging, as spans of a node follow them. Package
// api/tracing has those of clients.
const (
	keySystem      = attribute.Key("messaging.system")
	keyDestination = attribute.Key("messaging.destination.name")
	keyMessage     = attribute.Key("messaging.message.id")
	keyOperation   = attribute.Key("messaging.operation.name")

	keyAttempt    = attribute.Key("ddq.attempt")
	keyCreated    = attribute.Key("ddq.created") // when the task was enqueued, of a span that begins a trace
	keyLateness   = attribute.Key("ddq.lateness_ms")
	keyNode       = attribute.Key("ddq.node")
	keySchedule   = attribute.Key("ddq.schedule")
	keyOccurrence = attribute.Key("ddq.occurrence")

	keyHTTPMethod = attribute.Key("http.request.method")
	keyHTTPRoute  = attribute.Key("http.route")
	keyHTTPStatus = attribute.Key("http.response.status_code")

	keyService  = attribute.Key("service.name")
	keyInstance = attribute.Key("service.instance.id")
	keyVersion  = attribute.Key("service.version")
)

const operation = "deliver"

// attributes are those of the span of a delivery, none of which has what is in the task.
func (s *Spans) attributes(d *delivery.Handed) []attribute.KeyValue {
	all := []attribute.KeyValue{
		keySystem.String("ddq"), keyDestination.String(d.Topic), keyMessage.String(wire.Text(d.Task.ID)), keyOperation.String(operation),
		keyAttempt.Int(d.Task.Attempt), keyNode.String(s.cfg.Node),
	}
	if run := d.Task.RunOf; run != nil {
		all = append(all, keySchedule.String(wire.Text(run.Schedule)), keyOccurrence.Int64(int64(run.Occurrence)))
	}
	return all
}

// resourceOf says where spans come from. OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME have the last
// word.
func resourceOf(cfg Config) (*resource.Resource, error) {
	return resource.New(context.Background(), resource.WithTelemetrySDK(),
		resource.WithAttributes(keyService.String("ddq"), keyInstance.String(cfg.Node), keyVersion.String(cfg.Version)), resource.WithFromEnv())
}

// contextOf is the span that enqueued a task.
func contextOf(t *store.Trace) trace.SpanContext {
	state, _ := trace.ParseTraceState(t.State) // a bad one is none
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID(t.ID), SpanID: t.Span, TraceFlags: trace.TraceFlags(t.Flags), TraceState: state, Remote: true,
	})
}

// parentOf is the traceparent of a span.
func parentOf(span trace.Span) string {
	c := span.SpanContext()
	return wire.Traceparent(&store.Trace{ID: store.TraceID(c.TraceID()), Span: c.SpanID(), Flags: byte(c.TraceFlags())})
}
