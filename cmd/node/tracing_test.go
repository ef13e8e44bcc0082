package node

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// fakeCollector keeps the spans that it is sent.
type fakeCollector struct {
	collector.UnimplementedTraceServiceServer
	mu    sync.Mutex
	spans []*otlp.Span
	from  string
	hangs chan struct{} // nil: it does not
}

func (c *fakeCollector) Export(_ context.Context, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	if c.hangs != nil {
		<-c.hangs
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range r.ResourceSpans {
		c.from = fmt.Sprint(of.Resource)
		for _, scope := range of.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// collect serves a collector, and returns its endpoint.
func collect(t *testing.T, c *fakeCollector) string {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, c)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(lis) })
	t.Cleanup(func() {
		if c.hangs != nil {
			close(c.hangs)
		}
		server.Stop()
		serving.Wait()
	})
	return "http://" + lis.Addr().String()
}

// traced is a node whose deliveries are spans.
type traced struct {
	*testing.T
	*Node
	queue ddqv1.DelayQueueServiceClient
}

func startTraced(t *testing.T, tracing TracingConfig) *traced {
	t.Helper()
	cfg := &Config{Store: Memory, GRPCAddr: "127.0.0.1:0", HTTPAddr: "127.0.0.1:0", Tracing: tracing}
	cfg.Actors.Node = "n1"
	n, err := Start(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.Dial(n.GRPCAddr(), client.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &traced{t, n, ddqv1.NewDelayQueueServiceClient(c.Conn())}
}

func (n *traced) stop() {
	n.Helper()
	if err := n.Stop(); err != nil {
		n.Error(err)
	}
}

// deliver enqueues a task, and takes it.
func (n *traced) deliver(task *ddqv1.EnqueueRequest) *ddqv1.Delivery {
	n.Helper()
	task.Topic = "mail"
	if _, err := n.queue.Enqueue(n.Context(), task); err != nil {
		n.Fatal(err)
	}
	got, err := n.queue.Retrieve(n.Context(), &ddqv1.RetrieveRequest{Topic: "mail", WaitMs: 10_000})
	if err != nil || len(got.Deliveries) != 1 {
		n.Fatalf("retrieve: %v, %v", got, err)
	}
	return got.Deliveries[0]
}

// subscribed enqueues a task, and takes it from a stream.
func (n *traced) subscribed(task *ddqv1.EnqueueRequest) *ddqv1.Delivery {
	n.Helper()
	task.Topic = "stream"
	if _, err := n.queue.Enqueue(n.Context(), task); err != nil {
		n.Fatal(err)
	}
	ctx, cancel := context.WithCancel(n.Context())
	defer cancel()
	stream, err := n.queue.Subscribe(ctx)
	if err != nil {
		n.Fatal(err)
	}
	if err := stream.Send(&ddqv1.SubscribeRequest{Hello: &ddqv1.Hello{Topic: "stream"}, Credit: new(int32(1))}); err != nil {
		n.Fatal(err)
	}
	for {
		frame, err := stream.Recv()
		if err != nil {
			n.Fatal(err)
		}
		if len(frame.Deliveries) > 0 {
			return frame.Deliveries[0]
		}
	}
}

// scrape asks for the metrics in a form.
func (n *traced) scrape(form string) string {
	n.Helper()
	ask, err := http.NewRequestWithContext(n.Context(), http.MethodGet, "http://"+n.HTTPAddr()+"/metrics", nil)
	if err != nil {
		n.Fatal(err)
	}
	ask.Header.Set("Accept", form)
	resp, err := http.DefaultClient.Do(ask)
	if err != nil {
		n.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		n.Fatal(err)
	}
	return string(text)
}

// dropped is a count of ddq_spans_dropped_total.
func (n *traced) dropped(reason string) string {
	n.Helper()
	_, after, _ := strings.Cut(n.scrape(""), `ddq_spans_dropped_total{reason="`+reason+`"} `)
	count, _, _ := strings.Cut(after, "\n")
	return count
}

const (
	tracedTask   = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	untracedTask = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
)

// on are spans of deliveries as they are by default.
func on(endpoint string) TracingConfig {
	return TracingConfig{Endpoint: endpoint, Join: time.Minute, MaxPerSecond: 200}
}

func TestDeliveriesAreSpans(t *testing.T) {
	c := &fakeCollector{}
	n := startTraced(t, on(collect(t, c)))
	const canary = "canary-7f3a"
	for _, taken := range []*ddqv1.Delivery{
		n.deliver(&ddqv1.EnqueueRequest{Id: "a", Traceparent: tracedTask, Tracestate: "v=1", Payload: []byte(canary), Attributes: []*ddqv1.Attribute{{Key: "k", Value: canary}}}),
		n.subscribed(&ddqv1.EnqueueRequest{Id: "b", Traceparent: tracedTask, Payload: []byte(canary)}),
	} {
		if !strings.HasPrefix(taken.Traceparent, tracedTask[:36]) || taken.Traceparent == tracedTask || taken.Task.Traceparent != tracedTask {
			t.Errorf("%s is delivered with %q and %q", taken.Task.Id, taken.Traceparent, taken.Task.Traceparent)
		}
	}
	for _, id := range []string{"unsampled", "without"} {
		task := &ddqv1.EnqueueRequest{Id: id}
		if id == "unsampled" {
			task.Traceparent = untracedTask
		}
		if got := n.deliver(task); got.Traceparent != "" {
			t.Errorf("%s is delivered with %q", id, got.Traceparent)
		}
	}
	n.stop()
	if len(c.spans) != 2 || !strings.Contains(c.from, `"n1"`) {
		t.Fatalf("%d spans, of %s", len(c.spans), c.from)
	}
	for i, topic := range []string{"mail", "stream"} {
		span := c.spans[i]
		text := fmt.Sprint(span)
		if span.Name != "deliver "+topic || hex.EncodeToString(span.TraceId) != tracedTask[3:35] || hex.EncodeToString(span.ParentSpanId) != tracedTask[36:52] || len(span.Links) != 1 {
			t.Errorf("span %v", span)
		}
		if strings.Contains(text, canary) || !strings.Contains(text, "ddq.lateness_ms") || span.EndTimeUnixNano < span.StartTimeUnixNano {
			t.Errorf("span %v", span)
		}
	}
}

// A task that is due long after it was enqueued has a trace of its own.
func TestDeliveriesOfLaterTasksAreLinked(t *testing.T) {
	c := &fakeCollector{}
	tracing := on(collect(t, c))
	tracing.Join = 0
	n := startTraced(t, tracing)
	n.deliver(&ddqv1.EnqueueRequest{Traceparent: tracedTask, When: later(20 * time.Millisecond)})
	n.stop()
	if len(c.spans) != 1 || len(c.spans[0].ParentSpanId) > 0 || hex.EncodeToString(c.spans[0].Links[0].SpanId) != tracedTask[36:52] || !strings.Contains(fmt.Sprint(c.spans[0]), "ddq.created") {
		t.Errorf("spans %v", c.spans)
	}
}

func TestTracesOfTasksWithoutAContextAreSampled(t *testing.T) {
	c := &fakeCollector{}
	tracing := on(collect(t, c))
	tracing.Sample = 1
	n := startTraced(t, tracing)
	if got := n.deliver(&ddqv1.EnqueueRequest{}); !strings.HasSuffix(got.Traceparent, "-01") {
		t.Errorf("delivered with %q", got.Traceparent)
	}
	if got := n.deliver(&ddqv1.EnqueueRequest{Traceparent: untracedTask}); got.Traceparent != "" {
		t.Errorf("what the producer does not record is delivered with %q", got.Traceparent)
	}
	n.stop()
	if len(c.spans) != 1 || len(c.spans[0].Links) > 0 {
		t.Errorf("spans %v", c.spans)
	}
}

func TestSpansOverTheRateAreCounted(t *testing.T) {
	c := &fakeCollector{}
	tracing := on(collect(t, c))
	tracing.MaxPerSecond = 1
	n := startTraced(t, tracing)
	for range 20 {
		n.deliver(&ddqv1.EnqueueRequest{Traceparent: tracedTask})
	}
	if got := n.dropped("rate"); got == "0" || got == "" {
		t.Errorf("%q are dropped", got)
	}
	n.stop()
}

// A collector that is away, or hangs, holds up no delivery and no stop.
func TestCollectorThatIsAwayCostsNothing(t *testing.T) {
	for name, endpoint := range map[string]string{"away": "http://127.0.0.1:1", "hangs": collect(t, &fakeCollector{hangs: make(chan struct{})})} {
		n := startTraced(t, on(endpoint))
		for range 20 {
			n.deliver(&ddqv1.EnqueueRequest{Traceparent: tracedTask})
		}
		began := time.Now()
		n.stop()
		if d := time.Since(began); d > time.Minute {
			t.Errorf("%s: the stop takes %v", name, d)
		}
	}
}

func TestSettingsOfTracing(t *testing.T) {
	for want, tracing := range map[string]TracingConfig{
		"is a URL":              {Endpoint: "collector:4317", MaxPerSecond: 1},
		"--trace-url is a URL":  {URL: "https://traces.example.com/"},
		"such as https://trac":  {URL: "javascript:alert({trace_id})"},
		"is a URL such as":      {Endpoint: "ftp://collector", MaxPerSecond: 1},
		"would cross the net":   {Endpoint: "http://collector:4317", MaxPerSecond: 1},
		"--trace-sample is 0":   {Sample: 1.5},
		"--trace-join must not": {Join: -1},
		"--trace-max-per-s is":  {Endpoint: "https://collector:4317"},
	} {
		if err := tracing.check(false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", tracing, err, want)
		}
	}
	for _, endpoint := range []string{"", "https://collector:4317", "http://127.0.0.1:4317", "http://[::1]:4317", "http://localhost:4317"} {
		if err := (&TracingConfig{Endpoint: endpoint, MaxPerSecond: 1}).check(false); err != nil {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
	if err := (&TracingConfig{Endpoint: "http://collector:4317", MaxPerSecond: 1}).check(true); err != nil {
		t.Error(err)
	}
}

func later(d time.Duration) *ddqv1.EnqueueRequest_Delay {
	return &ddqv1.EnqueueRequest_Delay{Delay: durationpb.New(d)}
}

// Calls that read or administer are spans, and those about tasks are not: they have spans of their own.
// The caller decides what is recorded.
func TestCallsAndRequestsAreSpans(t *testing.T) {
	c := &fakeCollector{}
	n := startTraced(t, on(collect(t, c)))
	n.deliver(&ddqv1.EnqueueRequest{Id: "a"})
	for _, parent := range []string{tracedTask, untracedTask} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "traceparent", parent)
		if _, err := n.queue.GetTask(ctx, &ddqv1.GetTaskRequest{Topic: "mail", Id: "a"}); err != nil {
			t.Fatal(err)
		}
		if _, err := n.queue.Enqueue(ctx, &ddqv1.EnqueueRequest{Topic: "mail", Id: "b"}); err != nil {
			t.Fatal(err)
		}
		ask, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+n.HTTPAddr()+"/v1/topics/mail/tasks/canary-7f3a", nil)
		if err != nil {
			t.Fatal(err)
		}
		ask.Header.Set("traceparent", parent)
		resp, err := http.DefaultClient.Do(ask)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	scraped := n.scrape("application/openmetrics-text")
	n.stop()
	names := map[string]string{} // what they say, by name
	for _, span := range c.spans {
		if hex.EncodeToString(span.TraceId) != tracedTask[3:35] || hex.EncodeToString(span.ParentSpanId) != tracedTask[36:52] {
			t.Errorf("span %v", span)
		}
		names[span.Name] = fmt.Sprint(span)
	}
	if len(c.spans) != 2 || names["ddq.v1.DelayQueueService/GetTask"] == "" || !strings.Contains(names["GET /v1/topics/{topic}/tasks/{id}"], "404") {
		t.Errorf("spans %v", names)
	}
	if strings.Contains(fmt.Sprint(c.spans), "canary-7f3a") {
		t.Errorf("a path is told: %v", names)
	}
	for line := range strings.Lines(scraped) {
		if strings.HasPrefix(line, "ddq_grpc_request_seconds") && strings.Contains(line, "trace_id") && !strings.Contains(line, "GetTask") {
			t.Errorf("exemplar %s", line)
		}
	}
	if !strings.Contains(scraped, `trace_id="`+tracedTask[3:35]) {
		t.Error("no exemplar names the trace")
	}
}
