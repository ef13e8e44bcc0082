package dispatch

import (
	"math"
	"time"

	"github.com/ddq-io/ddq/store"
)

// Pace sets how many tasks may be handed out until it is called again, by the ramp of the
// topic's configuration, and reports whether it is to be called again. Nodes is how many
// share the topic.
func (t *Topic) Pace(now time.Time, topic *store.Topic, nodes int) (rising bool) {
	share := rampShare(topic, store.Millis(now.UnixMilli()))
	if share >= 1 {
		t.hold(now, t.core.endPace())
		return false
	}
	capacity, inFlight := t.core.capacity()
	t.hold(now, t.core.setPace(rampPace(share, capacity, inFlight, nodes)))
	return true
}

// rampShare is how far the ramp of a topic is, 0 to below 1; 1 when there is none.
func rampShare(t *store.Topic, now store.Millis) float64 {
	if t.Resumed == 0 || now >= t.Resumed.Add(t.Ramp) {
		return 1
	}
	return max(0, float64(now-t.Resumed)/float64(t.Ramp.Milliseconds()))
}

// rampPace is how many tasks a node hands out in a step: so far as the ramp is, that
// share of what the workers may hold, less what they hold. So with slow handlers the
// share of busy ones rises, and with quick ones the rate. Each of the nodes has its
// part of it, and one task at least.
func rampPace(share float64, capacity, inFlight, nodes int) int {
	return max(0, int(math.Ceil(share*float64(capacity)/float64(nodes)))-inFlight)
}

// capacity is what all subscriptions may hold, and how much of this node they do. A worker
// may ask for less than its max in flight; on demand it asks for what is ready only.
func (c *dispatcher) capacity() (most, inFlight int) {
	for _, s := range c.subs {
		if s.OnDemand {
			most += s.Max
		} else {
			most += min(s.Max, s.Credit+s.InFlight)
		}
		inFlight += s.InFlight
	}
	return most, inFlight
}
