package actors

import (
	"math"
	"time"

	"github.com/ddq-io/ddq/store"
)

// rampStep is how often the pace of a ramp rises.
const rampStep = 100 * time.Millisecond

// rampUp says what a change means for how deliveries begin again: the end of a pause
// starts a ramp, a pause ends it, and a ramp that is under way may get another length.
func (c *TopicChange) rampUp(t *store.Topic, paused bool, now store.Millis) {
	resumes := c.DeliveryPaused != nil && !*c.DeliveryPaused
	switch {
	case t.DeliveryPaused, resumes && c.Ramp == 0:
		t.Resumed, t.Ramp = 0, 0
	case resumes && paused:
		t.Resumed, t.Ramp = now, c.Ramp
	case resumes && t.Resumed != 0:
		t.Ramp = c.Ramp
	}
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

// rampUp sets the pace of the topic, and comes back while it is to rise.
func (t *topicActor) rampUp() {
	share := rampShare(t.topic, t.clock.millis())
	if share >= 1 {
		t.hold(t.core.endPace())
		return
	}
	capacity, inFlight := t.core.capacity()
	t.hold(t.core.setPace(rampPace(share, capacity, inFlight, 1+len(t.fleet.others()))))
	if !t.ramping {
		t.ramping = true
		t.after(rampStep, &rampOn{})
	}
}

// capacity is what all subscriptions may hold, and how much of this node they do.
func (c *core) capacity() (most, inFlight int) {
	for _, s := range c.subs {
		most += s.max
		inFlight += s.inFlight
	}
	return most, inFlight
}
