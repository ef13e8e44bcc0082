// Package pebblestore keeps tasks in a directory of this machine, in Pebble. It is
// the default store: one process, no server, synced to disk before every answer.
//
// # Keys
//
// Every shard has a number, handed out when it is first used, and all its keys
// begin with it:
//
//	number 'r' id              the task: header and body
//	number 'p' due id          pending tasks by due time
//	number 'h' batch           holds that one batch began or extended
//	number 'x' finished id     dead letters by the time they died
//	number 'd' finished id     done tasks by the time they were acked
//	number 't' trim id         done tasks by the end of their retention
//	number 'q' lane due id     pending tasks that have a lane
//	number 'y' key due id      unfinished tasks of ordering keys
//	number 'k' key             idempotency keys, and when to look whether they are free
//	number 'e' id              what the attempts of a task left behind, and its result
//	number 'j' length id name  what a name of a task returned, behind when it was kept
//	number 'i' name value id   tasks by their indexed attributes
//	number 'a'                 for which attributes that is complete
//	number 'w' position        what happened to tasks, for those who watch
//	number 'C' cell            cells
//	number 'W' wake cell       cells by when they wake
//	number 'L' list at cell    cells by the lists that show them
//	number 'I' n, 'O' n        parcels of the in-box and of the out-box
//	number 'Q' queue n         messages of the outbox queues: class, incarnation and topic, and the number
//	number 'm'                 how many of each, of batches, seq, the newest id, and the boxes
//	number 'o'                 the owner and its claim
//	0 's' topic number         the numbers of the shards
//	0 'c' topic                the configuration of topics
//	0 'f'                      the version of this layout
//
// Numbers and times are big-endian, so that keys sort as they count. In keys without
// a time, an id that is a UUID in its usual spelling takes 17 bytes, and any other
// one byte more than it has.
//
// # A change
//
// A call is a transaction at its shard: it locks the shard, validates each item, and
// collects what to write in one Pebble batch, which is atomic. The batch is applied in memory before the lock is
// released, and the call waits for the sync of the log outside of it: so calls on
// one shard share syncs as those on different shards do. Whoever answers from what
// is not synced yet waits for a sync as well: nothing that a crash could undo is
// ever told.
//
// Holds are few, bounded by what workers have in flight. They are kept in memory
// too, so that settling one reads nothing. What is pending is in Pebble alone. A
// hold is over when its task is gone or was written again, which every settlement
// does: so adding, holding and acking a task takes four keys, and a share of the one
// that has the holds of its batch.
//
// A commit is validated as a whole before anything of it is collected, and is a part of one
// batch: no more is applied in its midst. So a cell, its wake, its list, the tasks of a run
// and the parcels are there together or not at all, and a sweep has nothing to repair among
// them. What ends a task for good writes the parcel for its cell in that batch, too. The
// cell is named in the header of the task's entry, and the hold says whether the header is to
// be read: acking a task without a cell reads nothing.
//
// # Layers
//
// The database, and how it fails, is package datadir, which knows nothing of tasks. Here
// each line knows those above it, and none below:
//
//	keys, id, entry, holds, cell, parcel, meta  what is stored, as bytes
//	lookup, shard, shards                       what is in memory of a shard
//	batch, effects                              what a call sees and writes, and what that does to the memory
//	tasks, line, attributes, history, journals, changelog  parts of a task's life, which write to the batch
//	due                                         counts of pending tasks by due time
//	cells, boxes                                cells and parcels, the same
//	transaction, apply, ids, ends               a call's time at a shard, of those parts
//	add, hold, settle, commit, sweep, ...       the operations, each with a type over the transaction
//	pebblestore                                 Store: a type for each role, which gives calls their transactions
//
// How many tasks are due in each minute and hour is counted in memory, and only for an hour
// after somebody asked: a count on disk would be a key more for each minute of a batch.
//
// # What goes wrong
//
// The first write or sync that fails makes the store unavailable for good, and
// nothing is written to the directory after it: it is as a crash at that moment
// would leave it, and the next process recovers it as it would after a crash. Only
// a table that finds no room is written again later, because the log still has all
// of it. Add is refused with ErrFull meanwhile, and before it comes to that, see
// Config.MinFree. The other calls go on for as long as memory holds their changes.
package pebblestore
