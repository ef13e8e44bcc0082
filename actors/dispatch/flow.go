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

	// firstLife is how long a token is to last before a hold was measured. Moments of holds are whole milliseconds, so
	// it is roundedLife more than what was measured.
	firstLife, roundedLife = 10 * time.Millisecond, 2 * time.Millisecond

	// wayKept is what is kept of the slowest way when the next one is faster, in eighths.
	wayKept = 7

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

// adapt moves the bound of tasks that are assigned and not held, and measures how long a token has to last. Twice as long
// as it took leaves room for the call that brings it, and for a store that becomes slower.
func (t *assigner) adapt(now time.Time, o Outcome) {
	if o.Took > 0 && t.limiter != nil {
		t.way = max(o.Took, t.way/8*wayKept)
		t.limiter.tokenLife = 2*t.way + roundedLife
	}
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
