package spans

import (
	"context"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// ServerOptions are those of a gRPC server whose calls are spans: of what administers it, and of what
// only reads. Tasks have spans of their own, and a stream that lives for days has none. s may be nil.
func (s *Spans) ServerOptions() []grpc.ServerOption {
	if s == nil {
		return nil
	}
	recorded := recordedCalls()
	return []grpc.ServerOption{grpc.StatsHandler(otelgrpc.NewServerHandler(
		otelgrpc.WithTracerProvider(s.calls), otelgrpc.WithPropagators(propagation.TraceContext{}), otelgrpc.WithMeterProvider(noop.NewMeterProvider()),
		otelgrpc.WithFilter(func(call *stats.RPCTagInfo) bool { return recorded[call.FullMethodName] }),
	))}
}

// recordedCalls are the unary calls that have spans.
func recordedCalls() map[string]bool {
	recorded := make(map[string]bool)
	for _, service := range []*grpc.ServiceDesc{
		&ddqv1.AccessService_ServiceDesc, &ddqv1.AdminService_ServiceDesc, &ddqv1.AudienceService_ServiceDesc, &ddqv1.DelayQueueService_ServiceDesc,
		&ddqv1.OperationService_ServiceDesc, &ddqv1.ScheduleService_ServiceDesc, &ddqv1.WorkflowService_ServiceDesc,
	} {
		for i := range service.Methods {
			method := service.Methods[i].MethodName
			if service == &ddqv1.AdminService_ServiceDesc || auth.Reads(service.ServiceName, method) {
				recorded["/"+service.ServiceName+"/"+method] = true
			}
		}
	}
	return recorded
}

// Recorded is the id of the trace in which a call or a request is recorded, empty when it is in none.
func Recorded(ctx context.Context) string {
	if c := trace.SpanContextFromContext(ctx); c.IsSampled() && !c.IsRemote() {
		return c.TraceID().String()
	}
	return ""
}

// paced is a sampler of calls: as the caller decides, and never more than a node begins in a second.
type paced struct {
	sdk.Sampler
	spans *Spans
}

// ShouldSample decides about one span.
func (p paced) ShouldSample(of sdk.SamplingParameters) sdk.SamplingResult {
	result := p.Sampler.ShouldSample(of)
	if result.Decision == sdk.RecordAndSample && !p.spans.takes() {
		result.Decision = sdk.Drop
	}
	return result
}
