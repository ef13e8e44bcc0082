// Package client is ddq's Go SDK for producers and operators: it enqueues
// tasks, looks at them, and administers topics and dead letters. Package
// worker is its counterpart for those who process tasks.
//
//	c, err := client.Dial("127.0.0.1:9090", client.Config{})
//	...
//	receipt, err := c.Enqueue(ctx, client.Task{
//		Topic:   "mail",
//		Payload: []byte("hello"),
//		Delay:   5 * time.Second,
//	})
//
// # Where a call is
//
// All calls are methods of [Client], which embeds a type for each thing that they are
// about, and the calls are documented there:
//
//   - [Tasks]: enqueue, get, list, find, count, wait, watch, edit, reschedule, cancel,
//     delete, and tokens of a rate
//   - [Topics]: create, configure, describe, pause, resume, purge, delete
//   - [DeadLetters]: list, requeue, delete
//   - [Schedules]: put, describe, preview, pause, trigger, backfill, delete
//   - [Calendars]: put, get, list, delete
//   - [Audiences]: audiences and their recipients
//   - [access.Access]: who calls; tokens: create, list, rotate, revoke
//   - [Fleet]: the server, nodes, shards, drains, moves
//
// Package batch makes batches of single enqueues.
//
// # What an answer means
//
// A nil error from Enqueue means that the task is stored at the server's
// durability level and will be delivered at least once. Any other error is an
// *Error, which matches the sentinels of this package with errors.Is.
//
// # Repeating
//
// Every task has its id before it is first sent: the caller's, or a UUIDv7
// made here. An enqueue whose answer is lost is therefore repeated by the
// client until it is answered, and stores one task; ErrUnknown says that its
// outcome could not be found out. Other calls are repeated
// when they only read, when doing them twice is the same as once, or when the
// server said that it did nothing and when to come back.
//
// To make an enqueue repeatable across restarts of the caller, choose the id.
//
// # One stream
//
// Enqueue and EnqueueBatch of a Client share one stream. Whatever is waiting
// when the stream is free goes out as one frame, so that a lone call is sent
// at once, and many concurrent calls cost little more than a batch:
//
//	Enqueue ─┐            ┌─▶ frame 7 ─▶            ┌─▶ Enqueue returns
//	Enqueue ─┼─▶ pending ─┤             server ─────┤
//	Enqueue ─┘            └─▶ frame 8 ─▶            └─▶ ...
//
// Share a Client among goroutines; all its methods are safe for that.
package client
