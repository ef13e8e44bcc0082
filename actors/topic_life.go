package actors

import (
	"time"
)

// rampStep is how often the pace of a ramp rises.
const rampStep = 100 * time.Millisecond

// topicLife is the part of a topic's actor that raises its pace step by step, and ends it in
// order.
type topicLife struct {
	*topicState
	subs    *topicSubs
	ramping bool // a rampOn is pending
}

// receive handles a message about the pace or the end.
func (t *topicLife) receive(m any) {
	switch m := m.(type) {
	case *rampOn:
		t.ramping = false
		t.rampUp()
	case *drainTopic:
		t.drain(m)
	}
}

// rampUp sets the pace of the topic, and comes back while it is to rise.
func (t *topicLife) rampUp() {
	rising := t.core.Pace(t.Clock.Now(), t.topic, 1+len(t.Fleet.Others()))
	if rising && !t.ramping {
		t.ramping = true
		t.after(rampStep, &rampOn{})
	}
}

// drain has the topic hand out nothing more, and its streams go.
func (t *topicLife) drain(m *drainTopic) {
	t.draining, t.ref.draining = m, m
	t.core.Pause(t.Clock.Now(), true)
	t.subs.drainAll(m.grace)
}

// finishDrain reports once nothing is in flight any more.
func (t *topicLife) finishDrain() {
	if t.draining == nil || t.draining.over || t.core.InFlight() > 0 || t.core.Owes() {
		return
	}
	t.draining.over = true
	close(t.draining.done)
}
