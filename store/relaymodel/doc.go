// Package relaymodel is a model of the relay between outbox queues and the shards that they go to, by the rules of
// store.Queues. A search visits every state of it: of up to four messages, two sources that each have an owner and
// a former one, three shards, and pages of two, with pauses, full shards, lost answers, crashes, refusals, a reshard, and
// stores that lose their last writes.
//
//	safe   a message is made once at most, also counting dead letters; one that left its queue was made or is a
//	       dead letter, unless a store answered and then lost that
//	live   from every state one is reachable in which all queues are empty
//
// Each rule taken away is a mutant that the search must find. It is nothing but a test, which `make model` runs whole.
// It says nothing of encodings, of idempotency keys, or of a second failover.
package relaymodel
