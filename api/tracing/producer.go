package tracing

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"github.com/ddq-io/ddq/api/client"
)

// Client is a client whose enqueues are spans, from the call to the answer, repeats included. It is
// also a client.Enqueuer, for typed topics. Its Config has to have Context as Trace, for tasks to
// carry the span to their worker.
type Client struct {
	*client.Client
	tracer trace.Tracer
}

// NewClient returns c with spans. Closing either closes both.
func NewClient(c *client.Client, cfg Config) *Client { return &Client{c, cfg.tracer()} }

// Enqueue is Enqueue of the client, in a span.
func (c *Client) Enqueue(ctx context.Context, task client.Task) (client.Receipt, error) {
	ctx, span := c.begin(ctx, task.Topic)
	defer span.End()
	receipt, err := c.Client.Enqueue(ctx, task)
	if err != nil {
		fail(span, err)
	}
	if receipt.ID != "" && span.IsRecording() {
		span.SetAttributes(keyMessage.String(receipt.ID))
	}
	return receipt, err
}

// EnqueueBatch is EnqueueBatch of the client, in one span, which is that of all tasks. It is named
// for the topic of the first one.
func (c *Client) EnqueueBatch(ctx context.Context, tasks []client.Task) ([]client.Result, error) {
	if len(tasks) == 0 {
		return c.Client.EnqueueBatch(ctx, tasks)
	}
	ctx, span := c.begin(ctx, tasks[0].Topic)
	defer span.End()
	span.SetAttributes(keyBatch.Int(len(tasks)))
	results, err := c.Client.EnqueueBatch(ctx, tasks)
	if err != nil {
		fail(span, err)
	}
	return results, err
}

func (c *Client) begin(ctx context.Context, topic string) (context.Context, trace.Span) {
	return c.tracer.Start(ctx, opSend+" "+topic, trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(operation(opSend, topic)...))
}
