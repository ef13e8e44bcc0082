// Package timer tells queues of ids which of them have come due, to the
// millisecond and never early.
//
//	  queues (one an actor)          wheel (one a node)              library
//	┌─────────────────────────┐   ┌───────────────────────┐   ┌───────────────────┐
//	│ slot 12:00:00.007: a d g│──▶│ .000 - .015           │──▶│ one timer         │
//	│ slot 12:00:00.009: b    │──▶│   .007: queues 1, 2   │   │                   │
//	└─────────────────────────┘ ┌▶│   .009: queue 1       │   │  a turn: 65,536   │
//	┌─────────────────────────┐ │ │                       │   │  ticks of 1 ms    │
//	│ slot 12:00:00.007: c e  │─┘ ├───────────────────────┤   └───────────────────┘
//	│ slot 12:03:20.140: f    │──▶│ beyond half a turn    │   looked at once a
//	└─────────────────────────┘   │   .140: queue 2       │   second, armed when near
//	          ▲                   └───────────────────────┘             │
//	          └── Take(.007) ◀── notify(.007) ◀── is it due by Now? ◀───┘
//
// A tick is 1 ms. A slot is what is due in it, on the clock of the store: its ids
// lie in the queue, flat and without pointers, and a notify hands all of them
// over. A stretch is 16 slots in a row of the whole node.
//
// # One timer for many tasks
//
// The library spends 100 bytes, 300 ns and, when it fires, a goroutine on each
// timer. So it never gets one for a task, and not even one for a slot: it gets
// one for each stretch that is not empty, 62 a second at most, however many
// tasks there are. The goroutine that it starts walks through the stretch and
// sleeps from slot to slot. Removing and moving an id does not touch the
// library: a timer whose slots were emptied fires and finds nothing.
//
// # How late
//
// Never early: a slot is notified once Now has reached it, by looking.
//
// The library fires in the course of a millisecond, wherever its sleep began,
// and the Go runtime, when idle, sleeps in whole milliseconds: each is 0.5 ms late
// at the median. So the library is told to fire one to two milliseconds before a
// slot, and the rest is slept on a timer of the kernel, which is exact to some
// 50 us: 0.1 ms late at the median, and what the scheduler of a busy machine adds.
// It costs about 50 us of processor time a slot. Elsewhere than on Linux the
// runtime's sleep is used.
//
// When Now moves, what was armed before is late by as much, or armed again if
// it fired early. Call Reset after a jump.
//
// # When the library dies
//
// It can deadlock for good once a turn is shorter than what is put in it. So
// only what is due within half a turn goes in. Should it die nevertheless, its
// heartbeat of 1 s stops, and when that is 3 s late everything is armed anew on
// another wheel. Nobody but one goroutine of ours calls the library, so nobody
// else can hang in it. The machine's clock being set makes a new wheel too.
//
// Nothing here is durable, and nothing here is authority: a slot is a hint that
// the store is asked about.
package timer
