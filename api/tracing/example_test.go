package tracing_test

import (
	"context"
	"log"

	"go.opentelemetry.io/otel"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/tracing"
	"github.com/ddq-io/ddq/api/worker"
)

// A producer and a worker whose spans are one trace. The SDK of OpenTelemetry is set up with an
// exporter, as in any program.
func Example() {
	otel.SetTracerProvider(sdk.NewTracerProvider())
	c, err := client.Dial("127.0.0.1:9090", client.Config{Trace: tracing.Context})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	traced := tracing.NewClient(c, tracing.Config{})
	if _, err := traced.Enqueue(context.Background(), client.Task{Topic: "mail"}); err != nil {
		log.Print(err)
	}
	w := worker.New(c.Conn(), worker.Config{
		Topic: "mail", Middleware: []worker.Middleware{tracing.Middleware(tracing.Config{})},
	}, worker.HandlerFunc(func(ctx context.Context, _ worker.Task) error {
		_, span := otel.Tracer("mail").Start(ctx, "render") // a child of "process mail"
		defer span.End()
		return nil
	}))
	if err := w.Run(context.Background()); err != nil {
		log.Print(err)
	}
}
