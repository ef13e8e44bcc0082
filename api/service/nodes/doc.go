// Package nodes is what operators ask of the nodes of a fleet and of the shards that these own: how they
// fare, to drain, to give up a shard, to log more for a while.
package nodes
