package spans

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

const (
	queueSpans = 4096 // that are done and not sent
	sendEvery  = time.Second
	sayEvery   = time.Minute // about spans that the collector does not take
)

// export is the queue of spans that are done. It never blocks: what does not fit is counted.
type export struct {
	sdk.SpanProcessor
	waiting atomic.Int64
	dropped drops
}

// newExport returns a queue whose spans go to an endpoint.
func newExport(endpoint string, dropped drops, log *slog.Logger) (*export, error) {
	// It connects by itself, when there is something to send.
	to, err := otlptracegrpc.New(context.Background(), otlptracegrpc.WithEndpointURL(endpoint))
	if err != nil {
		return nil, err
	}
	return queueTo(to, dropped, log), nil
}

// queueTo is the queue of an exporter.
func queueTo(exporter sdk.SpanExporter, dropped drops, log *slog.Logger) *export {
	out := &export{dropped: dropped}
	out.SpanProcessor = sdk.NewBatchSpanProcessor(&counted{SpanExporter: exporter, waiting: &out.waiting, dropped: dropped, log: log},
		sdk.WithMaxQueueSize(queueSpans), sdk.WithBatchTimeout(sendEvery))
	return out
}

// OnEnd queues a span.
func (e *export) OnEnd(s sdk.ReadOnlySpan) {
	if e.waiting.Add(1) > queueSpans {
		e.waiting.Add(-1)
		e.dropped.full.Inc()
		return
	}
	e.SpanProcessor.OnEnd(s)
}

// counted counts the spans that a collector does not take, and says so now and then. One goroutine
// calls it.
type counted struct {
	sdk.SpanExporter
	waiting *atomic.Int64
	dropped drops
	log     *slog.Logger
	said    time.Time
}

// ExportSpans sends spans.
func (c *counted) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := c.SpanExporter.ExportSpans(ctx, spans)
	c.waiting.Add(-int64(len(spans)))
	if err == nil {
		return nil
	}
	c.dropped.export.Add(float64(len(spans)))
	if now := time.Now(); now.Sub(c.said) >= sayEvery {
		c.said = now
		c.log.Warn("spans are not taken, and dropped", "err", err)
	}
	return nil // it is dealt with: the library would write to stderr
}
