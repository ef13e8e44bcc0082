// Package store is what ddq knows for certain: the vocabulary of tasks, and the
// contract that every store keeps.
//
// # Life of a task
//
//	Add ──▶ pending ──Hold──▶ running ──Ack──▶ done (kept for the retention, then gone)
//	          ▲  ▲                │ Nack or Recover
//	          │  └────────────────┤ retry, release: pending again, due later
//	       Edit                   └ dead ──▶ dead ──Requeue──▶ pending
//
// A pending task shows as scheduled, ready or retrying: scheduled before its
// due time, ready after it, retrying while an attempt has failed and the next
// is not due yet. Dead letters include tasks that expired before delivery and
// tasks whose record could not be read.
//
// # What a store promises
//
//   - A call that returns without error is as durable as Info says, and so is what
//     it returns; but for Window, Told, and what Commit.Made and Early tell, which are
//     for who changes the shard next.
//   - Each item of a batch changes state atomically, after everything about it
//     was validated; items fail alone.
//   - The present moment is the store's clock, read once per call and returned
//     in Stamp. Hold never hands out a task before its due time on that clock.
//   - A mutating call is never repeated by the store. Every one is safe for the
//     caller to repeat with the same arguments when its outcome is unknown.
//   - Of the unfinished tasks of an ordering key in a shard one is held at a time, and
//     only the first of them, see Ordered.
//   - Hold, HoldNew and Recover are refused with ErrFenced unless they carry the
//     fence of the current claim of the shard. Ack, Nack and Extend are protected
//     by the hold token instead, and may come from any node.
//
// Nothing a caller keeps in memory is authority: stores answer from what is stored.
package store
