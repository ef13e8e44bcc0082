package actors

import (
	"time"

	"github.com/ddq-io/ddq/store"
)

// Tokens of a rate do not last, so a task that has one must be held soon. When the store
// is slow and workers have credit for many, all of them would be on their way at once,
// and most would come too late, be ready again, and take the place of others. So of a
// topic with a rate as many tasks are on their way as come through in time: their number
// grows while they do, and falls when one takes long (additive increase as in TCP would
// be slow to find a number between 64 and 16,384: it grows by a quarter).
const (
	leastOnWay = 64
	firstOnWay = 1024
	mostOnWay  = 16_384

	// longWay is when a task with its tokens takes long to be held, and wayLeft how long
	// a token of a bucket must last when it is taken: half of its life, and more than that.
	longWay = 150 * time.Millisecond
	wayLeft = 250 * time.Millisecond

	// cutPause is how long a lower number is given to take effect.
	cutPause = 100 * time.Millisecond
)

// cameThrough, from a shard: how many of the tasks that are counted are held, how many
// came too late for that, and how long the slowest was on its way.
type cameThrough struct {
	held, late int
	took       time.Duration
}

func (m *cameThrough) count(r *holdRequest, status store.Status, now store.Millis) {
	switch {
	case status == store.Late:
		m.late++
	case status != store.OK, r.leave != nil && r.leave.doomed: // a refund tells
	default:
		m.held++
	}
	if r.leave != nil && r.leave.since > 0 {
		m.took = max(m.took, now.Sub(r.leave.since))
	}
}

// bound begins or ends to bound how many tasks are on their way.
func (t *topicActor) bound(limits store.TopicLimits) []assignment {
	switch rated := limits.Rate.Limited() || limits.KeyRate.Limited(); {
	case !rated:
		return t.core.bound(0)
	case t.core.most == 0:
		return t.core.bound(firstOnWay)
	}
	return nil
}

// cameThrough takes in what became of tasks that were on their way.
func (t *topicActor) cameThrough(m *cameThrough) {
	if t.core.most > 0 {
		t.adapt(m)
		t.hold(t.core.arrived(m.held))
	}
}

// adapt lets more or fewer tasks be on their way.
func (t *topicActor) adapt(m *cameThrough) {
	c := &t.core
	if m.late == 0 && m.took <= longWay {
		if c.way > c.most/2 {
			c.most = min(c.most+m.held/4+1, mostOnWay)
		}
		return
	}
	if now := t.clock.Now(); now.Sub(t.cut) >= cutPause {
		c.most, t.cut = max(leastOnWay, c.most*3/4), now
	}
}
