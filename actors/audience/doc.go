// Package audience is the pure core of audiences: where a recipient lies, what becomes of
// a change, and how a run goes through all recipients, with no clock and no store.
//
// # Where recipients lie
//
// The hash of a recipient's id says all:
//
//	hash  1010011100110101…
//	      └shard─┘└position, as a fraction of the window: its place in each run
//	              └leaf─┘
//
// The recipients of a shard lie in leaves, cells of about a hundred neighbours of one
// zone; a leaf that gets too large is split in two. The directory of the shard has the
// leaves of each zone. Each change of the shard is one commit that puts the directory, so
// its version orders all changes. Who looks for a recipient without its zone looks into
// one leaf of each zone.
//
// # A run
//
// A run goes through each shard as a walk, in the order of positions, which is that of
// places: so it makes tasks just before they are due, and a position is all that it has to
// remember. It begins at a version of the shard. An entry of a recipient says from and
// until which version it counts, and that decides:
//
//   - who was a recipient at that version, and is one when its task is made, gets one
//   - who joined later, or left and joined again, gets none
//   - whose zone changed lies in two leaves, and gets one, where it lay when the run began
//   - preferences count as they are when the task is made
//
// Nobody gets two: a walk that repeats a step makes tasks of the same ids, and the commit
// that makes them has the walk's next position with them.
package audience
