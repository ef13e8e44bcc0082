// Package wakes knows until when the shards of closed topics are at rest: when the first task
// or cell of each is due, as the store had it. It is plain bookkeeping, and never asks anybody.
//
// A wake time is a hint. It counts only while the numbers that the store gives for the shard
// are those that it was read under, and not for long: see Table.
package wakes
