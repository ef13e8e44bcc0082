// Package redisstore keeps the store contract in Redis 7.0 or later, each call
// being one Lua script, or one per thousand items. It may be one server, a primary
// that sentinels watch, or a cluster: see Config.URL.
//
// # Keys
//
// The keys of a shard share a hash tag, so that they lie on one node of a cluster:
//
//	ddq:{topic:n}:owner    hash  node, start, nonce, epoch, seq, schema, waited, sealed,
//	                             indexed, watched, life; in, out and taken: numbers of parcels;
//	                             sent: number of the last message in a queue; queued: how many there are
//	ddq:{topic:n}:tasks    zset  pending: id -> due ms
//	ddq:{topic:n}:data     hash  id -> record: header and body, written by Add and Edit
//	ddq:{topic:n}:running  hash  id -> token, deadline, attempt, worker, node, started, due
//	ddq:{topic:n}:notes    hash  id -> what attempts left behind; only for tasks that
//	                             failed, were released or are over
//	ddq:{topic:n}:dlq      zset  dead: id -> finished ms
//	ddq:{topic:n}:done     zset  done: id -> finished ms
//	ddq:{topic:n}:kept     zset  done: id -> ms until which it is kept
//	ddq:{topic:n}:history  hash  id -> attempts that are over, and the result of a done
//	                             task; only for some of those that have a note
//	ddq:{topic:n}:traits   hash  id -> traits; only for tasks that have some
//	ddq:{topic:n}:lanes    zset  pending tasks that have a lane: lane, due, id; all of score 0
//	ddq:{topic:n}:order    zset  unfinished tasks of ordering keys: key, due, id; all of score 0
//	ddq:{topic:n}:marks    hash  idempotency key -> end of its window, due ms, id
//	ddq:{topic:n}:looks    zset  idempotency key -> when to look whether it is free
//	ddq:{topic:n}:attrs    hash  id -> indexed attributes; only for tasks that have some
//	ddq:{topic:n}:index    zset  of these, name, value, id; all of score 0
//	ddq:{topic:n}:tells    hash  id -> cell that the task tells, and whether it has a journal; only for
//	                             tasks that tell one or have one. And the journals, see lua/journal.lua
//	ddq:{topic:n}:cells    hash  cell -> version, when it wakes, list, body
//	ddq:{topic:n}:parts    hash  the same of cells that are parts of others
//	ddq:{topic:n}:wakes    zset  cell -> ms; only for cells that wake
//	ddq:{topic:n}:lists    zset  cells that are in a list: list, listed, cell; all of score 0
//	ddq:{topic:n}:in       strm  parcels for cells, an entry for each script that left some
//	ddq:{topic:n}:out      strm  parcels on their way to another shard, each an entry
//	ddq:{topic:n}:queues   zset  outbox queues that have messages: class, incarnation, topic; all of score 0
//	ddq:{topic:n}:queues:class:incarnation:topic
//	                       strm  messages of a queue, each an entry; deleted when it is empty
//	ddq:node:{name}        hash  a node's session: start, expires, ttl, addr, and "want N:TOPIC" -> node: see lua/want.lua
//	ddq:topics             hash  topic -> configuration
//
// and those of limits by the part that they belong to, see store.LimitKey:
//
//	ddq:{limit:p}:rate:topic:key     string  when its next token comes; expires when rested
//	ddq:{limit:p}:held:topic:key     zset    permits: token of the hold -> until ms
//	ddq:{limit:p}:waiting:topic:key  hash    nodes that wait for a permit: node -> since, seen
//
// A task is in data and in exactly one of tasks, running, dlq and done; every
// script that moves it does both sides, after it has checked everything that
// could make a command fail. Lua never looks into a body: it reads the header in
// front of it (see appendRecord).
//
// A shard has none of the keys from tells on, and no field in, until it gets a cell, a task that
// tells one or a journal; until then nothing looks at them. From then on its schema is 2, and nodes of before
// do not claim it: they would end tasks and not tell. Every script that ends a task for good,
// or opens it again, leaves the parcel in that very step. What a task tells goes with its
// record. Numbers of parcels go on when a shard is dropped. From its
// first message in a queue, or its first receipt, on its schema is 3, for the same reason.
//
// Ids are stored in a form that keeps their order and takes 24 bytes instead of
// 36 for a UUID, see id.go.
//
// The first Claim of a shard puts a guard into tasks, data and running: a member
// too long for Redis to keep a short set as a list, in which every look-up is a
// walk. Nothing else ever sees it.
//
// # Layers
//
// The servers, how they are reached and what their errors mean, is package conn, which
// knows nothing of tasks. Here each line knows those above it, and none below:
//
//	keys, id, codec, args, reply, place   what is stored, asked and answered
//	assemble, script                      the scripts, put together
//	core                                  what every call needs: connections, scripts, keys
//	batch, scan                           one call about a batch of items, one page of a hash
//	add, hold, settle, change, list, ...  the operations, of a type for each role of the contract
//	redis                                 Store: those types together; open, close
//
// # What an answer is worth
//
// What Redis is configured for: see Store.Info. Nothing is sent twice, except what
// certainly did not run: a script that the server did not know (NOSCRIPT), and in
// a cluster or behind sentinels also what was refused by a node that does not
// have the slot or does not serve it at the moment (MOVED, ASK, TRYAGAIN,
// CLUSTERDOWN, READONLY, LOADING, MASTERDOWN), or for which no connection could
// be made. That goes on for Config.Timeout, or as long as the context lasts. An
// error that says that nothing was done is true; where that cannot be known it is
// store.ErrUnknown.
//
// With Config.WaitReplicas a change and WAIT are sent together on one connection,
// one WAIT for a script however many items it is about, and the level is
// replicated. When too few replicas have answered in time, the change is made on
// the primary and the error is store.ErrUnknown. A repeated call may find its work
// done by an earlier one that did not reach the replicas, so scripts then write
// the field waited of the owner record, to have something to wait for.
//
// # Clusters
//
// Every script and every other command is about the keys of one slot; what is
// about many shards goes to each node in one pipeline. While a slot moves, a shard
// of it whose keys are on both sides answers store.ErrUnavailable until it is on
// one. Each shard is timed by the clock of the node that it lies on, and Clock is
// that of the node with ddq:topics.
//
// Calls of more than a thousand items, or with an id in them more than once, run
// several scripts, all at the moment of the first; the last raises Seq. When one
// fails after others have run, the error is store.ErrUnknown. A commit is made by one
// script, however much it does. Commits about the same cell or task, and those that a full
// server refuses and those that it does not (see life.BringsWork), are made by different ones.
package redisstore
