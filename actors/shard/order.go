package shard

import (
	"context"

	"github.com/ddq-io/ddq/actors/agenda"
	"github.com/ddq-io/ddq/actors/shard/timers"
	"github.com/ddq-io/ddq/store"
)

// orderAhead is how many tasks of an ordering key are asked for at a time: its head, and
// those that wait in memory.
const orderAhead = agenda.ParkedMost + 1

// orderFound, in a CallDone: the first tasks of keys.
type orderFound struct {
	keys  []string
	found [][]store.Ordered
	err   error
}

// orderer asks the store which tasks of ordering keys are first.
type orderer struct {
	*shardState
	claim   *claimer
	wheel   *timers.TaskWheel
	store   store.Reader
	counted int // tasks that wait for another one of their key, in the gauge
}

func newOrderer(claim *claimer, wheel *timers.TaskWheel) orderer {
	return orderer{shardState: claim.shardState, claim: claim, wheel: wheel, store: claim.Store}
}

// receive handles a message of the orderer. What a call of an earlier incarnation found says
// nothing about now.
func (o *orderer) receive(message any, own bool) {
	if !own {
		return
	}
	switch m := message.(type) {
	case *orderLook:
		o.onLook(m.ms)
	case *orderFound:
		o.onFound(m)
	}
}

// onLook looks at keys of which nobody told anything for a while.
func (o *orderer) onLook(ms int64) {
	o.TooEarly(ms) // else what is set anew is due at once, again and again
	for _, e := range o.wheel.TakeKeys(ms) {
		o.tasks.LookAtKey(e.ID)
	}
}

// ask asks the store for the first tasks of keys.
func (o *orderer) ask(keys []string) {
	o.calls.Run(func(ctx context.Context) {
		m := &orderFound{keys: keys}
		_, m.found, m.err = o.store.InOrder(ctx, o.id, keys, orderAhead)
		o.done(m)
	})
}

func (o *orderer) onFound(m *orderFound) {
	o.claim.noteError(m.err)
	for i, key := range m.keys {
		if m.err != nil {
			o.tasks.OrderNotFound(key)
			continue
		}
		o.tasks.OrderFound(o.Now(), key, m.found[i], len(m.found[i]) == orderAhead)
	}
}

// countBehind keeps the gauge of tasks that wait for another one of their key.
func (o *orderer) countBehind() {
	if n := o.tasks.Behind(); n != o.counted {
		o.Metrics.CountOrdered(o.id.Topic, n-o.counted)
		o.counted = n
	}
}
