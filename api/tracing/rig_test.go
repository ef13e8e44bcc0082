package tracing_test

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
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

// rig is a server, a producer that traces, and what spans there are.
type rig struct {
	*testing.T
	*tracing.Client
	spans *tracetest.SpanRecorder
	cfg   tracing.Config
}

// bubble runs test in fake time, with samplers of spans that begin a trace.
func bubble(t *testing.T, roots sdk.Sampler, test func(r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		quiet := slog.New(slog.DiscardHandler)
		db := memstore.New()
		node := actors.New(actors.Config{}, db, quiet, nil)
		up := upkeep.New(node)
		cases := service.New(node, up.IndexNow)
		must(t, node.Start(t.Context()))
		up.Start()
		s := server.New(server.Config{}, cases, quiet, nil)
		lis := bufconn.Listen(1 << 20)
		served := make(chan error, 1)
		go func() { served <- s.Serve(lis) }()
		spans := tracetest.NewSpanRecorder()
		provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(spans), sdk.WithSampler(sdk.ParentBased(roots)))
		c, err := client.Dial("passthrough:///node", client.Config{Trace: tracing.Context, DialOptions: []grpc.DialOption{
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }),
		}})
		must(t, err)
		cfg := tracing.Config{Provider: provider}
		test(&rig{T: t, Client: tracing.NewClient(c, cfg), spans: spans, cfg: cfg})
		must(t, c.Close())
		must(t, s.Stop(context.Background()))
		must(t, <-served)
		must(t, node.Stop(context.Background()))
		must(t, db.Close())
		time.Sleep(5 * time.Second) // the actor library forgets its dead letters after a while
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// work runs a worker for a while.
func (r *rig) work(d time.Duration, h worker.HandlerFunc) {
	r.Helper()
	w := worker.New(r.Conn(), worker.Config{
		Topic: "mail", Middleware: []worker.Middleware{tracing.Middleware(r.cfg)}, Logger: slog.New(slog.DiscardHandler),
	}, h)
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	must(r.T, w.Run(ctx))
}

// enqueue enqueues a task of the topic mail in a span of its caller.
func (r *rig) enqueue(task client.Task) (caller trace.SpanContext) {
	r.Helper()
	task.Topic = "mail"
	ctx, span := r.cfg.Provider.Tracer("caller").Start(r.Context(), "caller")
	defer span.End()
	_, err := r.Enqueue(ctx, task)
	must(r.T, err)
	return span.SpanContext()
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
