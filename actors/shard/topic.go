package shard

import (
	"sync/atomic"
	"time"

	"github.com/ddq-io/ddq/actors/clock"
	"github.com/ddq-io/ddq/actors/knobs"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/store"
)

// MaxHorizon is the greatest horizon of any node. Nodes tell each other of tasks
// that are due within it, whatever their own is.
const MaxHorizon = time.Minute

// PermitSlack is how much longer than a hold its permit lasts at first: time for the hold
// to be taken.
const PermitSlack = 2 * time.Second

// Config is what of a node's configuration concerns its shards.
type Config struct {
	Horizon          time.Duration
	HoldAhead        time.Duration
	WheelBudget      int
	ReadyBudget      int
	WatchdogInterval time.Duration
	Knobs            knobs.Knobs
}

// Topic is what the shards of a topic share with it and with each other. It is safe
// for concurrent use.
type Topic struct {
	Settings  Config
	Current   atomic.Pointer[store.Topic]
	Bodies    subscription.BodySize // of its tasks
	Active    atomic.Int64          // when it was last used, in Unix nanoseconds
	Busy      atomic.Bool           // ready tasks wait for a worker
	Workers   atomic.Bool           // somebody takes tasks here: a worker, or a member for its own
	Room      atomic.Int64          // how many tasks the workers of this node have room for
	Reachable func(n int) bool      // whether hints of other nodes find a shard; none is claimed before
}

// Slot is a shard as its topic has it, over restarts of the actor.
type Slot struct {
	Doze  *Doze
	Inbox *Inbox
	Clock *clock.Clock // that its due times are on
}

// Inbox is how far the in-box of a shard has come, as answers of the store said. It is safe
// for concurrent use.
type Inbox struct{ last atomic.Int64 }

// forget has the number of any parcel be news.
func (b *Inbox) forget() { b.last.Store(0) }

// Heard records the number of its last parcel, and reports whether that is news.
func (b *Inbox) Heard(in int64) bool {
	for {
		last := b.last.Load()
		if in <= last {
			return false
		}
		if b.last.CompareAndSwap(last, in) {
			return true
		}
	}
}
