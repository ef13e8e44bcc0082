package servicetest

import (
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors/subscription"
)

// crew are workers on several nodes, and the books of what they got.
type crew struct {
	*testing.T
	workers []*crewman
	Lasts   func() time.Duration // of a handler; nil: no time at all
	Dead    map[*Node]bool

	Got   []time.Time          // deliveries
	held  map[string]time.Time // until when, at most
	Most  int                  // held at a time
	Acked map[string]bool
}

type crewman struct {
	*Stream
	at      *Node
	running []run
}

type run struct {
	subscription.Delivery
	ends time.Time
}
