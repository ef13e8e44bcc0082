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
	all, own := t.core.capacity()
	t.hold(now, t.core.setPace(rampPace(share, all, nodes), rampPace(share, own, 1)))
	return true
}

// rampShare is how far the ramp of a topic is, 0 to below 1; 1 when there is none. One that begins
// later than it lasts is none: the store's clock was ahead when the topic was resumed, and has been
// put right since.
func rampShare(t *store.Topic, now store.Millis) float64 {
	if t.Resumed == 0 || now >= t.Resumed.Add(t.Ramp) || now < t.Resumed.Add(-t.Ramp) {
		return 1
	}
	return max(0, float64(now-t.Resumed)/float64(t.Ramp.Milliseconds()))
}

// rampPace is how many tasks a node hands out in a step: so far as the ramp is, that
// share of what the workers may hold, less what they hold. So with slow handlers the
// share of busy ones rises, and with quick ones the rate. Each of the nodes has its
// part of it, and one task at least.
func rampPace(share float64, r rampRoom, nodes int) int {
	return max(0, int(math.Ceil(share*float64(r.most)/float64(nodes)))-r.inFlight)
}

// rampRoom is what subscriptions may hold, and how much of it they do.
type rampRoom struct{ most, inFlight int }

func (r *rampRoom) add(most, inFlight int) { r.most, r.inFlight = r.most+most, r.inFlight+inFlight }

// capacity is what all subscriptions may hold of this node's tasks, and what those of its
// own workers may hold of all nodes'. A worker may ask for less than its max in flight.
// Another node asks on demand: it has bounded what it asks for by the ramp itself.
func (c *dispatcher) capacity() (all, own rampRoom) {
	for _, s := range c.subs {
		if s.OnDemand {
			all.add(s.Max, s.InFlight)
			continue
		}
		most := min(s.Max, s.Credit+s.InFlight)
		all.add(most, s.InFlight)
		own.add(most, s.InFlight)
	}
	return all, own
}
