package dispatch

import (
	"time"

	"github.com/ddq-io/ddq/store"
)

// Tokens of a rate do not last, so a task that has one must be held soon. When the store
// is slow and workers have credit for many, all of them would be in flight to it at once,
// and most would come too late, be ready again, and take the place of others. So of a
// topic with a rate as many tasks are assigned and not held as come through in time: their
// number grows while they do, and falls when one takes long (additive increase as in TCP
// would be slow to find a number between 64 and 16,384: it grows by a quarter).
const (
	leastUnheld = 64
	firstUnheld = 1024
	mostUnheld  = 16_384

	// longWay is when a task with its tokens takes long to be held.
	longWay = 150 * time.Millisecond

	// cutPause is how long a lower number is given to take effect.
	cutPause = 100 * time.Millisecond
)

// Outcome is what became of tasks of a shard that were assigned.
type Outcome struct {
	Held, Late int           // counted assignments that are held, and that came too late for that
	Took       time.Duration // the slowest, from its tokens to the store's answer
}

// Held records what became of tasks of a shard that were assigned.
func (t *Topic) Held(now time.Time, shard int, o Outcome) {
	if t.core.most > 0 {
		t.adapt(now, o)
	}
	t.hold(now, t.core.held(shard, o.Held))
}

// adapt moves the bound of tasks that are assigned and not held.
func (t *assigner) adapt(now time.Time, o Outcome) {
	switch {
	case o.Late == 0 && o.Took <= longWay:
		t.core.widen(o.Held)
	case now.Sub(t.cut) >= cutPause:
		t.core.narrow()
		t.cut = now
	}
}

// bound begins or ends to bound how many tasks may be assigned and not held.
func (t *assigner) bound(limits store.TopicLimits) []assignment {
	switch rated := limits.Rate.Limited() || limits.KeyRate.Limited(); {
	case !rated:
		return t.core.bound(0)
	case t.core.most == 0:
		return t.core.bound(firstUnheld)
	}
	return nil
}
