// Package shard is the actor of one shard, in parts, and the messages between it, its topic
// and the workers of subscriptions.
//
// The shard knows its part of the store: what is due soon, on the wheel; what is ready; and
// the holds. It makes the store calls about them, in batches. What it knows is decided in
// agenda; who gets a task is decided by its topic, which sends it HoldTasks.
//
//	topic ─ AddTasks, HoldTasks ─▶ shard ─ BecameReady, SettledHolds, Refunded ─▶ topic
//	                                 │  ▲
//	                         Deliver ▼  │ SettleHolds
//	                               worker
//
// A shard has an actor on every node where its topic is open, and at most one of them owns
// it, under a fence that the store checks. The others add, settle and edit; they tell the
// owner, and know nothing of what is due. The actor owns the goroutines of its store calls;
// all are gone when it has stopped. After a panic the next incarnation begins from the
// store, with the holds that were saved.
package shard
