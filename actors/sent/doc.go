// Package sent is what lies in the out-box of a shard: tasks that an ack enqueued, on their way to
// their shards, and what is kept of those that cannot be delivered. It is pure.
//
//	ack ─ one commit ─▶ out-box ─ owner ─▶ shard of the task, with a tally
//	                                 └───▶ undeliverable, in the shard of the ack
package sent
