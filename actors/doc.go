// Package actors is the runtime of a node: it takes tasks in, has them in hand
// when they are due, gives them to workers and takes their answers.
//
//	System ── supervisor ── topic (per topic in use here)
//	                          ├── shard (per owned shard)   wheel slots, holds, store calls
//	                          └── worker (per subscription) frames out, settlements in
//
// # Who knows what
//
// The topic's core matches due tasks with credit; it is pure. A shard knows what
// of its tasks is due soon, what is ready and what is held. A worker knows one
// stream. All of that is hints: each piece may be lost, repeated or late, and the
// store decides. What is durable is only what a store call returned.
//
// # Life of a task
//
//	Enqueue ─▶ topic: reserve credit for what is due now
//	             └▶ shard: pending batch ─▶ store.Add, or store.HoldNew for the reserved
//	                  └▶ due soon: wheel slot ─fires─▶ topic: ready ─▶ match
//	                                                     └▶ shard: store.Hold ─▶ worker ─▶ stream
//	stream ─▶ worker: settlements ─▶ shard: store.Ack, Nack, Extend ─▶ answer to the stream
//	                                   └▶ topic: room for more
//
// A shard has one Add, one HoldNew, one Ack, ... in flight; what arrives meanwhile
// makes the next batch. So an idle shard adds no latency, and a busy one works in
// full batches. Store calls run off the actors and come back as messages.
//
// # What is in memory
//
// The window: every pending task due before a watermark, kept up by a loader that
// reads the store ahead by the horizon. Budgets bound it: what does not fit lowers
// the watermark and is read again when there is room.
//
// # Shutdown
//
// Stop refuses new work, tells subscriptions to drain, waits for holds to be
// settled, lets queued store calls finish, releases the shards, and stops the
// actors from the leaves up.
package actors
