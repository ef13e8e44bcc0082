// Package knobs has the numbers that size a batch, a page or a wait of a node's actors: one place, so that
// the simulation can draw them.
package knobs

import (
	"cmp"
	"time"

	"github.com/ddq-io/ddq/store"
)

// Knobs are those numbers. Nobody but a test sets one: zero fields take the defaults.
type Knobs struct {
	// TellEvery is how long another node may ask for nothing of what it was told is ready, until it is told again; 1 s.
	TellEvery time.Duration

	// Of the relay.
	RelayPage   int // messages that are read at a time, store.MaxReceive at most; 1,024
	RelayWindow int // messages that a walk of a queue passes at most as their shards take nothing; 1,024
	EndBatch    int // completions that one commit brings; 1,000

	// Of a shard.
	HoldBatch   int // tasks of one Hold: a script that runs for long delays all others; 512
	SettleBatch int // acks, nacks or extends of one call; 512
	NextBatch   int // acks that enqueue, in one call; 64
	LoadPage    int // entries that the store is asked for at a time; 5,000
	SweepPage   int // keys that a sweep looks at; 1,000

	// Of a pass over entities.
	PassBatch int // entities that a pass takes on, of those that wake and of those with messages; 256
	PassInbox int // messages of the in-box that it reads; 4,096
	HandBatch int // messages of the out-box that are read at a time, to be handed on; 1,000
	HandPages int // that are handed on at a time; 4
}

// WithDefaults fills in the fields that are zero.
func (k Knobs) WithDefaults() Knobs {
	k.TellEvery = cmp.Or(k.TellEvery, time.Second)
	k.RelayPage = cmp.Or(k.RelayPage, 1024)
	k.RelayWindow = cmp.Or(k.RelayWindow, 1024)
	k.EndBatch = cmp.Or(k.EndBatch, 1000)
	k.HoldBatch = cmp.Or(k.HoldBatch, store.BatchItems)
	k.SettleBatch = cmp.Or(k.SettleBatch, store.BatchItems)
	k.NextBatch = cmp.Or(k.NextBatch, 64)
	k.LoadPage = cmp.Or(k.LoadPage, 5000)
	k.SweepPage = cmp.Or(k.SweepPage, 1000)
	k.PassBatch = cmp.Or(k.PassBatch, 256)
	k.PassInbox = cmp.Or(k.PassInbox, 4096)
	k.HandBatch = cmp.Or(k.HandBatch, 1000)
	k.HandPages = cmp.Or(k.HandPages, 4)
	return k
}
