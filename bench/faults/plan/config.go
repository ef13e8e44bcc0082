package plan

import "time"

// Config is what a plan follows from. The same makes the same plan.
type Config struct {
	Name string // of the producer whose tasks they are
	Seed uint64
	Mix  Mix

	For    time.Duration
	Rate   float64 // tasks a second
	Herd   int     // more tasks, all due HerdAt from the start
	HerdAt time.Duration

	Workflows  int           // of all shapes
	Chains     int           // of tasks that acks enqueue
	Schedules  int           // with all policies
	Midnight   int           // more of them, with an occurrence each, MidnightAt from the start
	MidnightAt time.Duration // whole seconds
	Recipients int           // of an audience
}
