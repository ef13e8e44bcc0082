// Package lease keeps the session of a node, which is the lease of all its shards: as long
// as it is renewed in time, no other node may own them. The keeper says when the lease is
// certainly alive; when it cannot be renewed it says so before the store lets others have
// the shards, because it counts from when a renewal was sent.
package lease
