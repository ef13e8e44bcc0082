package pulse

// Event is something that happens to a task.
type Event int

// What is counted.
const (
	Enqueued  Event = iota // it was stored as a new task
	Delivered              // it was handed to a worker
	Acked
	Failed // an attempt ended by a nack, or was not settled in time
	Dead   // it became a dead letter
	Events = 5
)

// Tally is a number of events of each kind.
type Tally [Events]int

// Empty reports whether nothing was counted.
func (t Tally) Empty() bool { return t == Tally{} }
