// Package dispatch decides which task goes to which subscription of a topic, and when.
//
// Topic is the whole of it. The topic actor tells it what happened, by one method for
// each kind of event, and carries out its Effects afterwards:
//
//	became due ─▶ ready queue ─▶ room at a worker ─▶ Hold
//	     └─ under limits ─▶ open groups ─▶ TakeCall ─┘
//	                          ▲              │
//	                          └─ parked ◀────┘ by what they lack
//
// The ready queue says which task is next, the dispatcher which subscription takes it. Tasks of a
// topic with limits are in groups that need the same; the limiter picks those that could go, and
// the store gives each all that it needs of rates and caps, or nothing.
// Flow bounds how many tasks of a topic with a rate are assigned and not held, and pace
// how many are handed out while a topic ramps up.
//
// Nothing here has a clock, a goroutine or I/O: the same calls always give the same
// effects. Nothing here is durable, and the store has the last word on every hold, token
// and permit.
package dispatch
