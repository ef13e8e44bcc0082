package shard

import (
	"time"

	"github.com/ddq-io/ddq/actors/dispatch"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/store"
)

// holdRequest is one ready task that a subscription has room for.
type holdRequest struct {
	sub       *subscription.Subscriber
	task      store.Entry
	admission *dispatch.Admission // nil: under no limit

	counted bool // its end is told, see dispatch.Hold
}

// holdsDone is what a Hold came to, in a CallDone.
type holdsDone struct {
	batch   []holdRequest
	tokens  []store.Hold
	results []store.HoldResult
	began   store.Millis
	took    time.Duration
	err     error
}
