// Package undeliverable is about tasks that acks enqueued and that no topic took. They are shown,
// sent again and deleted with the dead letters of the topic of the ack, in whose shards cells keep
// them.
package undeliverable
