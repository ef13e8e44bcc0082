// Package fleet is what a node knows of the others, and what they tell each other. A
// Membership goes by the last view of gossip: who is there, and who should own a shard.
// Notices are hints between nodes; any of them may be lost, because the store decides.
// Gossip and the calls themselves are behind Fleet and Peers, which others implement.
package fleet
