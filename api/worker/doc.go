// Package worker is ddq's Go SDK for those who process tasks. Package client
// is its counterpart for producers.
//
//	w := worker.New(conn, worker.Config{Topic: "mail", Concurrency: 16},
//		worker.HandlerFunc(func(ctx context.Context, t worker.Task) error {
//			return send(ctx, t.Payload) // nil acks, an error nacks with backoff
//		}))
//	err := w.Run(ctx) // until ctx ends and the handlers under way have finished
//
// # What becomes of a task
//
//	delivered ─▶ waiting ─▶ running ─┬─ nil ─────────────▶ acked: done
//	                │          │     ├─ error ───────────▶ nacked: again after backoff, or dead
//	                │          │     ├─ Permanent(err) ──▶ nacked: dead at once
//	                │          │     ├─ RetryAfter(d,err)▶ nacked: again after d
//	                │          │     ├─ Release(d) ──────▶ released: again after d, attempt not spent
//	                │          │     └─ panic ───────────▶ nacked, with the place of the panic
//	                │          └─ hold lost ─▶ handler's ctx is cancelled, its outcome ignored
//	                └─ worker stops ─▶ released
//
// The worker holds each task from its delivery on and extends the hold by
// itself, at a third of its length, while the task waits or runs. A hold is
// lost when that fails until it has run out, or when the server says so; the
// task is then another worker's, and the handler's context ends with ErrHoldLost.
//
// A handler has all the time it takes, unless Task.HandlerTimeout or Config.HandlerTimeout
// says otherwise: its context then has a deadline, and a handler that goes on past it loses its task, which
// fails the attempt. The visibility timeout is no such limit: it is how long a worker that
// died keeps its tasks.
//
// Delivery is at least once: a worker that dies, or loses its hold after the
// effect and before the ack, has its task delivered again. A handler whose
// effects must happen once records Task.ID, or uses Task.HoldToken as a
// fencing token, where the effect is made. One of several parts gives each a name and calls
// Task.Once: later attempts get what it returned, and do not repeat it. The handler of a step of a
// workflow may wait for other tasks, and for signals, in the middle: Task.Call and Task.Await.
//
// # Connections
//
// A worker keeps one stream for each topic. It grants the server credit for as
// many tasks as it has room for (see Config.MaxInFlight), and sends settlements, extensions and new
// credit together in one frame whenever the stream is free. When the stream
// breaks it connects again, after a random and growing pause of less than a second, and
// sends what was not answered once more; handlers go on meanwhile. A topic that does not
// exist is asked for again every second or two. How often the
// connection itself is tried is its own setting: one of client.Dial is back within a
// second of its server, gRPC's default may take two minutes.
//
// # Tests
//
// A handler is a function: give it a task of NewTask, and look at its error and at the
// task's Result. For the whole way, tests can start a server with `ddq server --store
// memory --grpc-addr 127.0.0.1:0`, which says in its log where it listens.
package worker
