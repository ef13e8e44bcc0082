// Package cluster says who belongs to a fleet of nodes, and which of them should
// own which shard. It knows nothing of tasks or stores.
//
// # Members
//
// Nodes gossip (HashiCorp's memberlist): each tells the others its name, where its
// gRPC port is, and whether it wants shards. A node that crashes or hangs is
// missed within about a second and taken for gone; one that leaves says so. What
// gossip says is a hint. It may be late, and two nodes may see different members
// for as long as the network between them is down. So nothing may depend on it for
// being right, only for being prompt: who does own a shard is decided by whoever
// keeps the claims, with fencing.
//
// The library never finds members again that it lost for longer than half a
// minute, and does not tell a node that was paused that the others gave it up. So
// every node joins again every ten seconds: the addresses it was started with,
// looked up anew, and every member of the last day that it does not see.
//
// A node whose name another one has, and answers to, is refused when it starts. Two
// of one name that could not see each other then are told apart by no one: each is
// seen by some, a warning names both addresses, and a person has to stop one. Nodes
// without a common protocol do not see each other, so in a fleet of three versions
// the oldest and the newest must overlap.
//
// Whoever reaches the port of gossip can make the library read before it checks a key.
// So there are few connections from others at a time, and few bytes of each are read.
// Without a key who reaches the port is a member, and may say what members say.
//
// # Placement
//
// Each shard should be owned by the active member for which a hash of member and
// shard, weighted, is the greatest (rendezvous hashing: Thaler and Ravishankar,
// "Using name-based mappings to increase hit rates", 1998; the weights as in
// Schindelhauer and Schomaker, "Weighted distributed hash tables", 2005). Nodes
// with the same view agree without talking, and when a member comes or goes only
// the shards move that it takes or leaves.
//
//	joining ──▶ active ◀──▶ draining ──▶ gone
//	            owns        gives up
package cluster
