package actors

import "time"

// rampStep is how often the pace of a ramp rises.
const rampStep = 100 * time.Millisecond

// rampUp sets the pace of the topic, and comes back while it is to rise.
func (t *topicActor) rampUp() {
	rising := t.core.Pace(t.clock.Now(), t.topic, 1+len(t.fleet.others()))
	if rising && !t.ramping {
		t.ramping = true
		t.after(rampStep, &rampOn{})
	}
}
