package subscription

import (
	"cmp"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/ddq-io/ddq/store"
)

// Subscriber is a subscription as the actors share it. It is safe
// for concurrent use: nothing of it changes but Gone and what Budget counts.
type Subscriber struct {
	ID      int64
	Options Options
	Worker  *actor.PID
	Out     Outbox
	Node    string // this one
	Party   string // who is told of what is ready: a node, or a worker
	Since   store.Millis
	Gone    atomic.Bool // the stream ended: hold nothing more for it
	Budget  *Budget
}

// HolderID names the subscription in holds.
func (sub *Subscriber) HolderID() int64 { return sub.ID }

// Hold is the hold that the store is asked for when a task is for this subscription.
func (sub *Subscriber) Hold(id string, token store.Token) store.Hold {
	return store.Hold{
		ID:         id,
		Token:      token,
		Visibility: sub.Options.Visibility,
		Worker:     sub.Options.Worker,
		Node:       sub.Node,
	}
}

// Compare orders subscriptions by age.
func Compare(a, b *Subscriber) int { return cmp.Compare(a.ID, b.ID) }
