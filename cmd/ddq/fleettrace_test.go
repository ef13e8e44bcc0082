//go:build unix

package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// spansOf is a collector that keeps the spans of a fleet.
type spansOf struct {
	collector.UnimplementedTraceServiceServer
	mu  sync.Mutex
	all []*otlp.Span // guarded by mu
}

func (c *spansOf) Export(_ context.Context, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, from := range r.ResourceSpans {
		for _, scope := range from.ScopeSpans {
			c.all = append(c.all, scope.Spans...)
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// deliveries are the spans of deliveries so far.
func (c *spansOf) deliveries() (all []*otlp.Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, span := range c.all {
		if strings.HasPrefix(span.Name, "deliver ") {
			all = append(all, span)
		}
	}
	return all
}

// A task that another node hands on is delivered once, by the node of its worker: there is one span.
func TestFleetMakesOneSpanOfADeliveryBetweenNodes(t *testing.T) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	spans, server := &spansOf{}, grpc.NewServer()
	collector.RegisterTraceServiceServer(server, spans)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(lis) })
	t.Cleanup(func() { server.Stop(); serving.Wait() })

	const tasks, parent = 24, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	f := startFleet(t, redistest.Start(t).URL(), "--otlp-endpoint", "http://"+lis.Addr().String())
	if _, err := f.clients[0].CreateTopic(t.Context(), "traced", client.Policy{Shards: new(fleetShards)}); err != nil {
		t.Fatal(err)
	}
	traced, err := client.Dial(f.nodes[0].addr, client.Config{Trace: func(context.Context) (traceparent, tracestate string) { return parent, "" }})
	if err != nil {
		t.Fatal(err)
	}
	defer traced.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var left sync.WaitGroup
	left.Add(tasks)
	w := worker.New(f.clients[1].Conn(), worker.Config{Topic: "traced"}, worker.HandlerFunc(func(_ context.Context, t worker.Task) error {
		defer left.Done()
		if !strings.HasPrefix(t.Trace.Delivery, parent[:36]) || t.Trace.Delivery == parent {
			return fmt.Errorf("delivered with %q", t.Trace.Delivery)
		}
		return nil
	}))
	running, stop := context.WithCancel(ctx)
	var working sync.WaitGroup
	working.Go(func() { _ = w.Run(running) })
	for range tasks {
		if _, err := traced.Enqueue(ctx, client.Task{Topic: "traced"}); err != nil {
			t.Fatal(err)
		}
	}
	left.Wait()
	stop()
	working.Wait()
	await(t, "the spans", func() bool { return len(spans.deliveries()) >= tasks })
	nodes := map[string]int{}
	for _, span := range spans.deliveries() {
		for _, a := range span.Attributes {
			if a.Key == "ddq.node" {
				nodes[a.Value.GetStringValue()]++
			}
		}
		if fmt.Sprintf("%x", span.ParentSpanId) != parent[36:52] || fmt.Sprintf("%x", span.TraceId) != parent[3:35] {
			t.Errorf("span %v", span)
		}
	}
	if n := len(spans.deliveries()); n != tasks || len(nodes) != 1 {
		t.Errorf("%d spans of %d tasks, by nodes %v", n, tasks, nodes)
	}
}
