package spans

import (
	"context"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// A call that is never a span costs one value of its context, whatever its caller records.
func TestCallsThatAreNoSpansCostLittle(t *testing.T) {
	dropped, err := newDrops(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	recorder := tracetest.NewSpanRecorder()
	made, err := to(recorder, Config{Sample: 1, MaxPerSecond: 1000}, dropped)
	if err != nil {
		t.Fatal(err)
	}
	h := made.statsHandler()
	caller := metadata.NewIncomingContext(t.Context(), metadata.Pairs("traceparent", "00-01000000000000000000000000000000-0200000000000000-01"))
	call := func(method string) {
		ctx := h.TagRPC(caller, &stats.RPCTagInfo{FullMethodName: method})
		h.HandleRPC(ctx, &stats.Begin{})
		h.HandleRPC(ctx, &stats.InPayload{})
		h.HandleRPC(ctx, &stats.OutPayload{})
		h.HandleRPC(ctx, &stats.End{})
	}
	call(ddqv1.DelayQueueService_GetTask_FullMethodName)
	if n := len(recorder.Ended()); n != 1 {
		t.Errorf("%d spans of a call that reads, want 1", n)
	}
	allocations := testing.AllocsPerRun(100, func() { call(ddqv1.DelayQueueService_Enqueue_FullMethodName) })
	if n := len(recorder.Ended()); n != 1 {
		t.Errorf("%d spans are made of enqueues", n-1)
	}
	if allocations > 6 { // five are of the arguments here
		t.Errorf("%v allocations", allocations)
	}
	if Recorded(h.TagRPC(context.Background(), &stats.RPCTagInfo{FullMethodName: ddqv1.DelayQueueService_Enqueue_FullMethodName})) != "" {
		t.Error("an enqueue is recorded")
	}
}
