// Package actors is the shell of the runtime of a node: the supervisor, the topics, their
// links to other nodes and their workers. The shards are a package below, shard. They have
// no rules of their own: which task a worker gets is decided in dispatch, what the owner of a
// shard knows is kept in agenda. Use cases are in api/service, chores in upkeep.
//
//	Node ── supervisor ── topic (per topic in use)      dispatch, calls about limits
//	                       ├── shard (per shard)        agenda, store calls, timer queues
//	                       ├── worker (per subscription) deliveries out, settlements in
//	                       └── link (per subscription and other node) credit on demand
//
// A node starts with Start: it opens its session, which is the lease of all its shards,
// and the topics that have tasks in shards of this node. Other topics open on first use.
// Stop ends it. A Node owns its pool of goroutines, the wheel, the renewal of the session
// and what BeforeStop was given; all are gone when Stop returns.
//
// # What is believed
//
// Only what a store call returned is true. The ready tasks and credit of a topic, the window and
// the holds of a shard, the layout of shards, who the other nodes are: all of that are hints,
// each of which may be lost, repeated or late. An actor that panics is restarted, and
// begins from the store; results of store calls of the incarnation before it are learned,
// and not counted.
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
// # Clocks
//
// Due times are on the store's clock. The node follows it by the stamps of answers; where
// shards lie on machines with clocks of their own, each shard follows its own.
//
// # What is in memory
//
// The window: every pending task due before a watermark, kept up by a loader that
// reads the store ahead by the horizon. Budgets bound it: what does not fit lowers
// the watermark and is read again when there is room.
//
// Bodies come into memory with a Hold. Those that are not sent yet are bounded in bytes,
// for each subscription and for the node: what there is no room for is not held, and
// another subscription may have it.
//
// # Shutdown
//
// Stop refuses new work, tells subscriptions to drain, waits for holds to be
// settled, lets queued store calls finish, releases the shards, and stops the
// actors from the leaves up.
package actors
