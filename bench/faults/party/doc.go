// Package party has the clients of a round of faults: producers, workers, watchers and a scheduler, each a
// process of its own that is started with a Config and ends with its plan, or with its orders.
// They know the addresses of nodes, the plan, and their ledger, into which they write each call
// before it is made and what came of it.
//
// To add one, write its role in a file of its own and name it in roles.
package party
