// Package outbox enqueues tasks in the transactions of a database, PostgreSQL or SQLite: a
// transaction that commits makes its tasks, one that is rolled back none.
//
//	producer's transaction        relay                       ddq
//	  insert into orders
//	  Enqueue: insert a row ──▶  reads rows in order
//	  commit                      EnqueueBatch ─────────────▶ one task for each row
//	                              deletes what landed
//
// Enqueue writes a row and returns the task's id. A Relay, in any process, hands the rows on
// by an api/client. A row that ddq refuses for good is kept apart with the reason.
//
// # One row, one task
//
// A row has an id and an idempotency key, made for each other when it is written. A relay
// that dies between the enqueue and the delete leaves the row to the next one, whose repeat
// is the same request: ddq knows it for RelayConfig.Window from the first, even when the task
// was delivered and is done by then. There is no cursor, so a transaction that commits late
// is not passed over, and no transaction is open while ddq is called.
//
// # Order
//
// One relay of an outbox reads at a time; others stand by. It hands rows on in the order in
// which they were written, a batch at a time, so that ordering keys mean what they say.
//
// # The way back
//
// Effect is for handlers that write to the same database: it makes what they write there
// happen once for a task, however often that is delivered.
package outbox
