// Package cells looks at the cells of a shard that its node owns: it reads those that wake and
// the parcels for them, has each stepped, and commits what becomes of them under the claim's
// fence. It walks the recipients of runs, and moves schedules to where they lie after a reshard.
//
//	shard ─ Start ─▶ Looker.Look ─ Outcome ─▶ shard
//	                   │     ▲
//	             what is   what becomes of it
//	               there   (actors/schedule, actors/audience)
//	                   │     │
//	                 store.Cells
//
// A look runs off the shard's actor, and knows no actor, message or timer. It keeps nothing that
// counts: how far it has come is in the Outcome, and the shard begins the next look with that.
// When to look, and who is told what a look did, is the shard's to say.
//
// Workflows are remembered as they were committed: the next look takes one as it is remembered if its
// header still says the same, and reads it otherwise. Whatever a look believes, its commit is made only
// on the version of the header that it read.
//
// Most looks are at what workflows are told, and brief: parcels with their headers, and one commit. They
// may see what is not synced yet, as the commit is not without that. When the next
// cell wakes is known of the last whole look and of what was put since; what somebody else put, and told
// nobody of, is found by the next whole one, which is within a second where there are brief ones.
//
// While tasks of the shard are ready, ends of runs that nothing hangs on are put off: a look reads which
// parcels there are and leaves them, until no task is ready, something else is told, or a second has passed.
// What hangs on an end is known of the commit of a look, for as long as nobody else changes the schedule.
package cells
