// Package redisstore keeps the store contract in Redis 7.0 or later, each call
// being one Lua script, or one per thousand items.
//
// # Keys
//
// The keys of a shard share a hash tag, so that they lie on one node of a cluster:
//
//	ddq:{topic:n}:owner    hash  node, start, nonce, epoch, seq, schema
//	ddq:{topic:n}:tasks    zset  pending: id -> due ms
//	ddq:{topic:n}:data     hash  id -> record: header and body, written once by Add
//	ddq:{topic:n}:running  hash  id -> token, deadline, attempt, worker, due
//	ddq:{topic:n}:notes    hash  id -> what attempts left behind; only for tasks that
//	                             failed, were released or are over
//	ddq:{topic:n}:dlq      zset  dead: id -> finished ms
//	ddq:{topic:n}:done     zset  done: id -> finished ms
//	ddq:{topic:n}:kept     zset  done: id -> ms until which it is kept
//	ddq:node:{name}        hash  a node's session: start, expires, addr
//	ddq:topics             hash  topic -> configuration
//
// A task is in data and in exactly one of tasks, running, dlq and done; every
// script that moves it does both sides, after it has checked everything that
// could make a command fail. Lua never looks into a body: it reads the header in
// front of it (see appendRecord).
//
// Ids are stored in a form that keeps their order and takes 24 bytes instead of
// 36 for a UUID, see id.go.
//
// The first Claim of a shard puts a guard into tasks, data and running: a member
// too long for Redis to keep a short set as a list, in which every look-up is a
// walk. Nothing else ever sees it.
//
// # What an answer is worth
//
// What Redis is configured for: see Store.Info. Nothing is sent twice, except a
// script that Redis did not know (NOSCRIPT), of which nothing ran. An error that
// says that nothing was done is true; where that cannot be known it is
// store.ErrUnknown.
//
// Calls of more than a thousand items, or with an id in them more than once, run
// several scripts, all at the moment of the first; the last raises Seq. When one
// fails after others have run, the error is store.ErrUnknown.
package redisstore
