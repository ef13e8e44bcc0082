// Package meter counts what a node does to tasks, for the pulses of topics: what its store calls
// came to, and what its workers were handed. Each call of the store, and each batch of deliveries, is
// counted at once, under a lock of its topic. A task that is enqueued, settled or delivered is counted by
// one node of a fleet, which makes the call.
package meter
