package spans

import (
	"context"
	"io"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/upkeep"
	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/server"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/tracing"
	"github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/store/memstore"
)

// rig is a server whose deliveries are spans, and a producer that traces. What all of them record is
// in one place.
type rig struct {
	*testing.T
	*tracing.Client
	spans *tracetest.SpanRecorder
	cfg   tracing.Config
	lis   *bufconn.Listener
}

// bubble runs test in fake time, with a share of the tasks without a context for which a trace is begun.
func bubble(t *testing.T, sample float64, test func(r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		quiet := slog.New(slog.DiscardHandler)
		r := &rig{T: t, spans: tracetest.NewSpanRecorder(), lis: bufconn.Listen(1 << 20)}
		dropped, err := newDrops(prometheus.NewRegistry())
		r.must(err)
		made, err := to(r.spans, Config{Sample: sample, Join: time.Minute, MaxPerSecond: 1000, Node: "n1"}, dropped)
		r.must(err)
		db := memstore.New()
		node := actors.New(actors.Config{}, db, quiet, nil)
		up := upkeep.New(node)
		cases := service.New(node, up.IndexNow)
		r.must(node.Start(t.Context()))
		up.Start()
		s := server.New(server.Config{Spans: made}, cases, quiet, nil)
		served := make(chan error, 1)
		go func() { served <- s.Serve(r.lis) }()
		r.cfg = tracing.Config{Provider: sdk.NewTracerProvider(sdk.WithSpanProcessor(r.spans))}
		r.Client = tracing.NewClient(r.dial(), r.cfg)
		test(r)
		r.must(r.Close())
		r.must(s.Stop(context.Background()))
		r.must(<-served)
		r.must(node.Stop(context.Background()))
		r.must(db.Close())
		time.Sleep(5 * time.Second) // the actor library forgets its dead letters after a while
	})
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *rig) dial() *client.Client {
	r.Helper()
	c, err := client.Dial("passthrough:///node", client.Config{Trace: tracing.Context, DialOptions: []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return r.lis.DialContext(ctx) }),
	}})
	r.must(err)
	return c
}

// enqueue enqueues a task of the topic mail.
func (r *rig) enqueue(task client.Task) {
	r.Helper()
	task.Topic = "mail"
	_, err := r.Enqueue(r.Context(), task)
	r.must(err)
}

// work runs a worker of the topic mail for a while.
func (r *rig) work(d time.Duration, h worker.HandlerFunc) {
	r.Helper()
	w := worker.New(r.Conn(), worker.Config{
		Topic: "mail", Middleware: []worker.Middleware{tracing.Middleware(r.cfg)}, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}, h)
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	r.must(w.Run(ctx))
}

// named are the spans of a name, in the order in which they ended.
func (r *rig) named(name string, n int) (all []sdk.ReadOnlySpan) {
	r.Helper()
	for _, span := range r.spans.Ended() {
		if span.Name() == name {
			all = append(all, span)
		}
	}
	if len(all) != n {
		r.Fatalf("%d spans are %s, want %d", len(all), name, n)
	}
	return all
}

// value is an attribute of a span as text; empty when it has none.
func value(span sdk.ReadOnlySpan, key string) string {
	for _, a := range span.Attributes() {
		if string(a.Key) == key {
			return a.Value.String()
		}
	}
	return ""
}

// below reports whether a span is a child of another one, in its trace.
func below(span, parent sdk.ReadOnlySpan) bool {
	return span.Parent().SpanID() == parent.SpanContext().SpanID() && span.SpanContext().TraceID() == parent.SpanContext().TraceID()
}

// linked reports whether a span has a link to another one, and no other.
func linked(span, to sdk.ReadOnlySpan) bool {
	return len(span.Links()) == 1 && span.Links()[0].SpanContext.SpanID() == to.SpanContext().SpanID() &&
		span.Links()[0].SpanContext.TraceID() == to.SpanContext().TraceID()
}
