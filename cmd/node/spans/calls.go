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
	return []grpc.ServerOption{grpc.StatsHandler(s.statsHandler())}
}

func (s *Spans) statsHandler() stats.Handler {
	return picked{recordedCalls(), otelgrpc.NewServerHandler(
		otelgrpc.WithTracerProvider(s.calls), otelgrpc.WithPropagators(propagation.TraceContext{}), otelgrpc.WithMeterProvider(noop.NewMeterProvider()),
	)}
}

// picked tells a handler about some calls only. A filter of the library would have it read the headers and
// the method of all others, too.
type picked struct {
	calls map[string]bool
	stats.Handler
}

type pickedKey struct{}

// TagRPC says in the context of a call whether it is one of them.
func (p picked) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	is := p.calls[info.FullMethodName]
	ctx = context.WithValue(ctx, pickedKey{}, is)
	if is {
		ctx = p.Handler.TagRPC(ctx, info)
	}
	return ctx
}

// HandleRPC hands on what is about one of them.
func (p picked) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if is, _ := ctx.Value(pickedKey{}).(bool); is {
		p.Handler.HandleRPC(ctx, s)
	}
}

// recordedCalls are the unary calls that have spans.
func recordedCalls() map[string]bool {
	recorded := make(map[string]bool)
	for _, service := range []*grpc.ServiceDesc{
		&ddqv1.AccessService_ServiceDesc, &ddqv1.AdminService_ServiceDesc, &ddqv1.AudienceService_ServiceDesc, &ddqv1.AuditService_ServiceDesc, &ddqv1.DelayQueueService_ServiceDesc,
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
