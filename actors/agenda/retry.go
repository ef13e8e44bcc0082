package agenda

import (
	"cmp"
	"math"
	"time"

	"github.com/ddq-io/ddq/store"
)

const DefaultBackoffMax = 24 * time.Hour

// wait returns how long a task rests after its n-th attempt failed, n from 1.
// random is in [0, 1).
func wait(b store.Backoff, n int, random float64) time.Duration {
	base, factor := float64(b.Base), 1.0
	switch b.Kind {
	case store.BackoffLinear:
		factor = float64(n)
	case store.BackoffQuadratic:
		factor = float64(n) * float64(n)
	case store.BackoffExponential:
		factor = math.Pow(2, float64(n-1))
	}
	capped := math.Min(base*factor, float64(cmp.Or(b.Max, DefaultBackoffMax)))
	return time.Duration(capped * (1 - random*float64(b.Jitter)/100))
}

// Retries is what a task's end depends on: its own policy, or the topic's.
type Retries struct {
	attempt int
	max     int
	backoff store.Backoff
}

// RetriesOf is the task's own policy where it has one, else the topic's.
func RetriesOf(t *store.Task, topic *store.Topic) Retries {
	r := Retries{attempt: t.Attempt, max: t.RetryLimit(topic), backoff: topic.Backoff}
	if t.Backoff != nil {
		r.backoff = *t.Backoff
	}
	return r
}

// Failed says what becomes of a task whose attempt failed: due again after its
// backoff, or dead for reason when that was the last attempt.
// random is in [0, 1).
func (r Retries) Failed(n store.Nack, reason store.Reason, random float64) store.Nack {
	if r.attempt > r.max {
		n.Reason = reason
		return n
	}
	n.Delay = wait(r.backoff, r.attempt, random)
	return n
}
