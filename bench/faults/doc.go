// Package faults breaks a ddq on purpose while it works, and proves afterwards that
// every promise was kept.
//
// A round is one fault on one fresh set of processes:
//
//	round (this process) ── starts, breaks, heals ──▶ stand: nodes, Redis
//	   │   └── starts, breaks ──▶ party: producers, workers, watchers, processes of their own
//	   └── nemesis.ledger              └── p0.ledger, w0.ledger, ...
//	                     └──── ledger.Check ────┘
//
// Three packages are below, and none knows of rounds. A stand is the nodes and the store,
// with the network, disk and clock that they run on. A plan says what each task goes through,
// decided by the seed and the id alone. A party plays it through the public SDK and writes
// down what it sees.
//
// Here, from the bottom up: a round has a stand, its parties and a schedule (round.go,
// process.go, setting.go). Topics, backlog, schedules, workflows, watch and audit are what it does to topics
// and reads at the end. A fault_*.go has the faults of one thing, and what each may cost. play.go is the
// order of a round, run.go starts and judges it, and a campaign plays many.
//
// To add a fault, write it in a fault_*.go and name that in list.go. To add a party, write
// its role in package party, name it in roles there, and start it in play.go.
//
// The worker's ledger is taken off the wire, below the SDK (see tap): what is written
// down is what the server sent and answered, whatever the SDK makes of it. Workers of other SDKs
// are programs that a party starts, and is a proxy for. The calls of an outbox are rows of a PostgreSQL.
package faults
