package shard

import (
	"sync/atomic"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/store"
)

// Addition is one task to be stored. What became of it is told to `to`, then to call.
type Addition struct {
	Task *store.Task
	To   Asker
	Call *Countdown
	Sub  *subscription.Subscriber // whose credit is reserved for it; nil: none
}

// Asker is told what became of a task that it asked for: one of the two, once, from any
// goroutine.
type Asker interface {
	// Added says what the store answered.
	Added(t *store.Task, r store.AddResult)
	// Refused says why the store was not asked, or did not answer.
	Refused(err *problem.Error)
}

// Immediate reports whether credit may be reserved for the task: it is due, nothing but
// its id decides whether it is stored, and no other task whether it is held.
func (a *Addition) Immediate(now store.Millis) bool {
	return a.Task.Due <= now && a.Task.Key == nil && a.Task.Traits.Ordering() == ""
}

// FailAdditions refuses tasks.
func FailAdditions(items []Addition, err *problem.Error) {
	for i := range items {
		items[i].To.Refused(err)
		items[i].Call.Finish(1)
	}
}

// Countdown calls done when all of n parts are finished.
type Countdown struct {
	// Step, if set, is called by whoever finishes parts that are not the last. It is set before any are.
	Step func()

	left atomic.Int32
	done func()
}

// NewCountdown returns a countdown of n parts; done is called by whoever finishes the last.
func NewCountdown(n int, done func()) *Countdown {
	c := &Countdown{done: done}
	c.left.Store(int32(n))
	return c
}

// Finish counts k parts out.
func (c *Countdown) Finish(k int) {
	switch {
	case c.left.Add(-int32(k)) == 0:
		c.done()
	case c.Step != nil:
		c.Step()
	}
}
