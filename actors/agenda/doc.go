// Package agenda is what a shard knows of its part of the store: how far it has read
// ahead, lanes, ordering keys, holds, acks, and which notices it missed. All of it is a
// hint, and the store decides. The rules take the time as an argument; the shard's actor
// owns them and makes the store calls.
//
// What is pending is Shard, in layers:
//
//	Shard    what happened to tasks, ordering keys and the claim
//	loader   which pages of the window and of lanes are to be read
//	memory   where each task belongs: wheel, ready, behind another one, nowhere
//	ahead    how long before its due time a task becomes ready
//
// Beside it are HoldTable, AckLog, GapDetector and Claim, which know nothing of it.
package agenda
