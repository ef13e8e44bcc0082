// Package faults breaks a ddq on purpose while it works, and proves afterwards that
// every promise was kept.
//
// A round is one fault on one fresh set of processes:
//
//	round (this process) ── starts, breaks, heals ──▶ nodes, Redis
//	   │   └── starts, breaks ──▶ producers, workers: parties, processes of their own
//	   └── nemesis.ledger              └── p0.ledger, w0.ledger, ...
//	                     └──── ledger.Check ────┘
//
// Nouns, a file each: a plan says what each task goes through, decided by the seed and
// the id alone; a producer and a worker are parties that play it through the public
// SDK and write down what they see; a stand is the nodes and the store; a round puts
// them together and lets a Fault strike. What a fault does, and what it may cost, is
// in the list that Faults returns.
//
// The worker's ledger is taken off the wire, below the SDK (see tap): what is written
// down is what the server sent and answered, whatever the SDK makes of it.
package faults
