// Package subscription is what is said about a subscription, between the actors of a node,
// its streams and other nodes: its options, the deliveries that it gets, the settlements
// that it answers with, the outbox of its stream, and the bytes of bodies that are out of
// the store for it.
package subscription
