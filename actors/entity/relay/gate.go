package relay

import (
	"sync"
	"time"

	"github.com/ddq-io/ddq/store"
)

const (
	pagesOfANode = 32 // that are in memory at most

	countSoonest = 100 * time.Millisecond // between two counts of a topic for which somebody waits
	countLatest  = time.Second
	pausedLatest = 5 * time.Second // after which the queues of a paused topic are tried, should a change be missed
)

// Gate knows how much work each topic takes, for all shards of a node together, and which queues wait for that. It
// has no clock and makes no call. Its functions are safe for concurrent use.
//
// Invariants:
//   - a queue that was admitted nothing is woken: by a change of its topic, by a count with room, or after a while
//   - no more is admitted behind a count than there was room, but for what other nodes admit
type Gate struct {
	// Pages has room for the pages that all relays of the node may have in memory.
	Pages chan struct{}

	mu     sync.Mutex
	topics map[string]*entrance // those for which somebody waits, or that were counted a moment ago
}

// entrance is what is known of a topic.
type entrance struct {
	paused  bool
	most    int64 // max_backlog; 0: it has none
	room    int64 // as it was counted, less what was admitted since
	counted store.Millis
	due     store.Millis  // of the next count, or of the next try while it is paused
	every   time.Duration // between counts: longer while there is no room
	waiting []store.Queue
}

// NewGate returns a gate that knows nothing yet.
func NewGate() *Gate {
	return &Gate{Pages: make(chan struct{}, pagesOfANode), topics: make(map[string]*entrance)}
}

// Admit returns how many messages of a queue a topic takes now, at most n. With 0 the queue waits to be woken.
func (g *Gate) Admit(t *store.Topic, q store.Queue, n int, now store.Millis) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !t.EnqueuePaused && t.MaxBacklog == 0 {
		if e := g.topics[t.Name]; e == nil || len(e.waiting) == 0 {
			delete(g.topics, t.Name)
			return n
		}
	}
	e := g.of(t, now)
	switch {
	case e.paused:
	case e.most == 0:
		return n
	case e.room > 0 && e.counted <= now && now < e.counted.Add(countLatest):
		part := min(int64(n), max(1, e.room/int64(len(e.waiting)+1)))
		e.room -= part
		return int(part)
	}
	e.waits(q)
	return 0
}

// of is the entrance of a topic, as that is now.
func (g *Gate) of(t *store.Topic, now store.Millis) *entrance {
	e := g.topics[t.Name]
	if e == nil {
		e = &entrance{due: now, every: countSoonest}
		g.topics[t.Name] = e
	}
	if was := e.paused; t.EnqueuePaused && !was {
		e.due = now.Add(pausedLatest)
	} else if was && !t.EnqueuePaused {
		e.due = now
	}
	if most := int64(t.MaxBacklog); e.most != most {
		e.most, e.room, e.due = most, 0, min(e.due, now)
	}
	e.paused = t.EnqueuePaused
	return e
}

func (e *entrance) waits(q store.Queue) {
	for _, other := range e.waiting {
		if other == q {
			return
		}
	}
	e.waiting = append(e.waiting, q)
}

// wake returns those that wait, who ask again.
func (e *entrance) wake() (all []store.Queue) {
	all, e.waiting = e.waiting, nil
	return all
}

// GiveUp gives back what was admitted and not made.
func (g *Gate) GiveUp(topic string, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e := g.topics[topic]; e != nil && e.most > 0 {
		e.room += int64(n)
	}
}

// Changed is told of each topic whose policy changes, and returns the queues that are to try again.
func (g *Gate) Changed(t *store.Topic, now store.Millis) []store.Queue {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.topics[t.Name] == nil {
		return nil
	}
	if e := g.of(t, now); !e.paused {
		return e.wake()
	}
	return nil
}

// Due returns which topics are to be counted now, the queues of paused ones that are to try again, and when
// something is due next; 0: nothing is. What is due later than the longest pause was so by a clock that was set back since.
func (g *Gate) Due(now store.Millis) (count []string, wake []store.Queue, next store.Millis) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, e := range g.topics {
		switch {
		case len(e.waiting) == 0:
			if e.counted > now || now >= e.counted.Add(countLatest) {
				delete(g.topics, name)
			}
			continue
		case e.due > now && e.due <= now.Add(pausedLatest):
		case e.paused, e.most == 0:
			wake = append(wake, e.wake()...)
			e.due = now.Add(pausedLatest)
			continue
		default:
			count = append(count, name)
			e.due = now.Add(e.every) // should the count fail
		}
		if next == 0 || e.due < next {
			next = e.due
		}
	}
	return count, wake, next
}

// Counted says how many tasks are pending in a topic, and returns the queues that are to try again.
func (g *Gate) Counted(topic string, pending int64, now store.Millis) []store.Queue {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := g.topics[topic]
	if e == nil || e.paused {
		return nil
	}
	e.room, e.counted = e.most-pending, now
	if e.room <= 0 {
		e.every = min(2*e.every, countLatest)
		e.due = now.Add(e.every)
		return nil
	}
	e.every = countSoonest
	e.due = now.Add(e.every)
	return e.wake()
}

// Forget drops a queue that is another node's now.
func (g *Gate) Forget(q store.Queue) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e := g.topics[q.To]; e != nil {
		for i, other := range e.waiting {
			if other == q {
				e.waiting = append(e.waiting[:i:i], e.waiting[i+1:]...)
				return
			}
		}
	}
}
