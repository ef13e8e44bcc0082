// Package timer tells queues of ids which of them have come due, to the
// millisecond and never early.
//
//	  queues (one an actor)           wheel (one a node)              library
//	┌─────────────────────────┐   ┌────────────────────────┐   ┌──────────────────┐
//	│ slot 12:00:00.007: a d g│──▶│ .007: queues 1, 2      │──▶│ one timer        │
//	│ slot 12:00:00.009: b    │──▶│ .009: queue 1          │──▶│ one timer        │
//	└─────────────────────────┘ ┌▶│                        │   │  a turn: 65,536  │
//	┌─────────────────────────┐ │ │                        │   │  ticks of 1 ms   │
//	│ slot 12:00:00.007: c e  │─┘ ├────────────────────────┤   └──────────────────┘
//	│ slot 12:03:20.140: f    │──▶│ beyond half a turn     │   looked at once a
//	└─────────────────────────┘   │ 12:03:20.140: queue 2  │   second, armed when near
//	          ▲                   └────────────────────────┘            │
//	          └── Take(.007) ◀── notify(.007) ◀── is it due by Now? ◀───┘
//
// # Why a slot is one timer
//
// A tick is 1 ms, a slot is what is due in it, on the clock of the store. The
// library spends 100 bytes, 300 ns and, when it fires, a goroutine on each
// timer. So it gets one for each millisecond of the node that is not empty, at
// most a thousand a second, whatever the number of tasks. What is in the slot
// lies in the queues, flat and without pointers; a notify hands the whole of it
// over. Removing and moving an id never touches the library: a timer whose slot
// was emptied fires and finds nothing.
//
// # How late
//
// Never early: when the library fires, Now is asked, and only what is due by it
// is notified. Late by at most
//
//   - under 1 ms, where the due time falls between two milliseconds of the
//     machine's clock (it does when Now is off that clock by no whole number),
//   - under 1 ms, as the library fires in the course of a millisecond,
//   - and what the scheduler of a busy machine adds.
//
// When Now moves, what was armed before is late by as much, or armed again if
// the timer came early. Call Reset after a jump.
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
