// Package runtime is what the actors of a node share: its store, clock, wheel, pool and
// lease, who waits for tasks, and how a store call is repeated whose outcome is unknown. It
// knows no topics and no shards. All of it is safe for concurrent use.
package runtime
