// Package peer reaches the other nodes of a fleet: it is the actors.Peers of a
// node that serves gRPC.
//
// There is one connection to each node. Hints share one stream each way, which is
// opened anew when it breaks; what it cannot carry is dropped, because the owner of
// a shard finds out from the store. A subscription is an ordinary Subscribe stream
// with credit on demand, so a node that works for the workers of another one is to
// its own runtime what every worker is.
package peer
