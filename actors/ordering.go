package actors

import (
	"context"

	"github.com/ddq-io/ddq/store"
)

// orderAhead is how many tasks of an ordering key are asked for at a time: its head, and
// those that wait in memory.
const orderAhead = parkedMost + 1

// To a shard, about ordering keys.
type (
	// orderLook, from the wheel: it is time to look at keys.
	orderLook struct{ ms int64 }
	// orderFound, from its store calls: the first tasks of keys.
	orderFound struct {
		keys  []string
		found [][]store.Ordered
		err   error
	}
)

// standBehind has a task wait that the store did not let be held.
func (s *shard) standBehind(e store.Entry, r *store.HoldResult) {
	if s.owned {
		s.orders.behind(e, r.Head)
	}
}

// unheld takes in that a task of an ordering key was not held.
func (s *shard) unheld(id string, status store.Status) {
	if status == store.WrongState {
		s.orders.doubt(id)
		return
	}
	s.orders.ended(id)
}

// flushOrders carries out what became of ordering keys.
func (s *shard) flushOrders() {
	o := &s.orders
	for !o.idle() {
		o.settle()
		out, later, asks, watch := o.out, o.later, o.asks, o.watch
		o.out, o.later, o.asks, o.watch = nil, nil, nil, nil
		for _, e := range out {
			s.letOut(e)
		}
		for _, e := range later {
			s.learn(e)
		}
		for _, l := range watch {
			s.watchLine(l)
		}
		s.askOrders(asks)
	}
}

// letOut makes a task that waited go to the topic, whatever budgets say.
func (s *shard) letOut(e store.Entry) {
	if _, known := s.out[e.ID]; known {
		return
	}
	s.unwait(e.ID)
	s.out[e.ID] = struct{}{}
	s.lanes.put(e.ID, e.Traits, s.lanes.lane(e.Traits, &s.window), true)
	s.fresh = append(s.fresh, e)
}

func (s *shard) watchLine(l *orderLine) {
	if s.looks == nil {
		s.looks = s.wheel.NewQueue(func(ms int64) { s.post(&orderLook{ms}) })
	}
	s.looks.Insert(l.key, int64(l.lookAt(s.now())))
}

// onOrderLook looks at keys of which nobody told anything for a while.
func (s *shard) onOrderLook(ms int64) {
	if s.looks == nil {
		return
	}
	for _, e := range s.looks.Take(ms) {
		s.orders.timeToLook(e.ID, s.withTopic)
	}
}

// withTopic reports whether a task is ready, or being held.
func (s *shard) withTopic(id string) bool {
	_, known := s.out[id]
	return known
}

// askOrders asks the store for the first tasks of keys.
func (s *shard) askOrders(keys []string) {
	if len(keys) == 0 {
		return
	}
	s.calls.run(func(ctx context.Context) {
		m := &orderFound{keys: keys}
		_, m.found, m.err = s.store.InOrder(ctx, s.id, keys, orderAhead)
		s.post(m)
	})
}

func (s *shard) onOrderFound(m *orderFound) {
	s.noteError(m.err)
	for i, key := range m.keys {
		if m.err != nil {
			s.orders.notFound(key)
			continue
		}
		s.orders.found(key, m.found[i], len(m.found[i]) == orderAhead, s.now(), s.withTopic)
	}
}

// forgetOrders forgets the ordering keys that the shard knows of.
func (s *shard) forgetOrders() {
	s.orders = orderLines{most: s.orders.most}
	if s.looks != nil {
		s.looks.Close()
		s.looks = nil
	}
}
