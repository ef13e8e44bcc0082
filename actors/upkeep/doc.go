// Package upkeep is what a node does now and then: it follows the fleet and the topics,
// ticks shards, trims, reindexes and retires what is over. It looks at the runtime from outside.
package upkeep
