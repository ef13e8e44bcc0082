package actors

import (
	"context"

	"github.com/ddq-io/ddq/actors/agenda"
	"github.com/ddq-io/ddq/store"
)

// orderAhead is how many tasks of an ordering key are asked for at a time: its head, and
// those that wait in memory.
const orderAhead = agenda.ParkedMost + 1

// To a shard, about ordering keys.
type (
	// orderLook, from the wheel: it is time to look at keys.
	orderLook struct{ ms int64 }
	// orderFound, in a callDone: the first tasks of keys.
	orderFound struct {
		keys  []string
		found [][]store.Ordered
		err   error
	}
)

// onOrderLook looks at keys of which nobody told anything for a while.
func (s *shard) onOrderLook(ms int64) {
	if s.looks == nil {
		return
	}
	for _, e := range s.looks.Take(ms) {
		s.tasks.LookAtKey(e.ID)
	}
}

// askOrders asks the store for the first tasks of keys.
func (s *shard) askOrders(keys []string) {
	s.calls.Run(func(ctx context.Context) {
		m := &orderFound{keys: keys}
		_, m.found, m.err = s.store.InOrder(ctx, s.id, keys, orderAhead)
		s.done(m)
	})
}

func (s *shard) onOrderFound(m *orderFound) {
	s.noteError(m.err)
	for i, key := range m.keys {
		if m.err != nil {
			s.tasks.OrderNotFound(key)
			continue
		}
		s.tasks.OrderFound(s.now(), key, m.found[i], len(m.found[i]) == orderAhead)
	}
}

// countOrders keeps the gauge of tasks that wait for another one of their key.
func (s *shard) countOrders() {
	if n := s.tasks.Behind(); n != s.behind {
		s.metrics.waits.WithLabelValues(s.id.Topic, waitsForOrder).Add(float64(n - s.behind))
		s.behind = n
	}
}
