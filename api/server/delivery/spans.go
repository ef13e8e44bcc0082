package delivery

import "github.com/ddq-io/ddq/api/ddqv1"

// Spans makes a span of each delivery whose trace is recorded, from when its task is due until it is
// sent. Many goroutines call it. It must not block.
type Spans interface {
	// Begin begins the spans of deliveries that are about to be sent, in the order of their tasks, and
	// writes the contexts of the spans into them. The function that it returns ends these, once they
	// are sent or cannot be; it is nil when there are none.
	Begin(tasks []Handed, deliveries []*ddqv1.Delivery) (end func(sent bool))
}
