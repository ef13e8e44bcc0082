// Package tracing makes OpenTelemetry spans of what producers send and workers process, and one trace
// of both where they are not far apart.
//
// A producer dials with Context in its configuration, and enqueues by a Client of this package, which
// makes a span for each call:
//
//	c, err := client.Dial(addr, client.Config{Trace: tracing.Context})
//	traced := tracing.NewClient(c, tracing.Config{})
//	receipt, err := traced.Enqueue(ctx, client.Task{Topic: "mail"})
//
// A worker has Middleware, outermost, which makes a span for each attempt:
//
//	worker.Config{Topic: "mail", Middleware: []worker.Middleware{tracing.Middleware(tracing.Config{})}}
//
// The span of an attempt has a link to that of the send. It is also its child when the task was due
// soon after it was enqueued, see Config.Join; else it begins a trace of its own, because no backend
// keeps a trace open for a day. Attempts of one task are siblings. With Config.Settle the ack or nack of
// an attempt is a span below it.
//
// Spans have names and numbers of tasks, and never payloads, results, attributes or texts of errors.
// The package uses the API of OpenTelemetry alone: where spans go, and how many of them, is for the
// SDK that the program sets up.
package tracing
