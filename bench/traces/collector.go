package traces

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
)

// Collector takes spans over OTLP, counts them, and forgets them. It owns the goroutines of a gRPC
// server, gone after Close.
type Collector struct {
	collector.UnimplementedTraceServiceServer
	addr    string
	server  *grpc.Server
	serving sync.WaitGroup
	spans   atomic.Int64
}

// Start returns a collector of the options, nil when none is wanted.
func (o Options) Start(ctx context.Context) (*Collector, error) {
	if !o.Collect {
		return nil, nil
	}
	var config net.ListenConfig
	lis, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("collector: %w", err)
	}
	c := &Collector{addr: lis.Addr().String(), server: grpc.NewServer()}
	collector.RegisterTraceServiceServer(c.server, c)
	c.serving.Go(func() { _ = c.server.Serve(lis) }) // ends by Close
	return c, nil
}

// Export takes spans.
func (c *Collector) Export(_ context.Context, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	for _, from := range r.GetResourceSpans() {
		for _, scope := range from.GetScopeSpans() {
			c.spans.Add(int64(len(scope.GetSpans())))
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// Spans is how many it has taken; 0 of nil.
func (c *Collector) Spans() int64 {
	if c == nil {
		return 0
	}
	return c.spans.Load()
}

// Close ends it. It may be called twice, and on nil.
func (c *Collector) Close() {
	if c == nil {
		return
	}
	c.server.Stop()
	c.serving.Wait()
}

// Flags are those of a server that sends its spans to the collector; none of nil.
func (o Options) Flags(c *Collector) []string {
	if c == nil {
		return nil
	}
	flags := []string{"--otlp-endpoint", "http://" + c.addr}
	if o.PerSecond > 0 {
		flags = append(flags, "--trace-max-per-s", fmt.Sprint(o.PerSecond))
	}
	return flags
}
