// Package intake is what a node remembers of the enqueues to a topic: how many more its
// backlog may take, and where tasks with slack went. It is plain arithmetic under a lock,
// and never asks anybody.
package intake

import "github.com/ddq-io/ddq/actors/smooth"

// Topic is that of one topic. The zero value is ready to use.
type Topic struct {
	Backlog Allowance
	Smooth  smooth.Smoother
}
