package actors

import (
	"math"
	"time"

	"github.com/ddq-io/ddq/store"
)

const (
	defaultBackoffMax = 24 * time.Hour
	maxErrorBytes     = 1024
)

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
	capped := math.Min(base*factor, float64(or(b.Max, defaultBackoffMax)))
	return time.Duration(capped * (1 - random*float64(b.Jitter)/100))
}

// retries is what a task's end depends on: its own policy, or the topic's.
type retries struct {
	attempt int
	max     int
	backoff store.Backoff
}

func retriesOf(t *store.Task, topic *store.Topic) retries {
	r := retries{attempt: t.Attempt, max: topic.MaxRetries, backoff: topic.Backoff}
	if t.MaxRetries >= 0 {
		r.max = t.MaxRetries
	}
	if t.Backoff != nil {
		r.backoff = *t.Backoff
	}
	return r
}

// failed says what becomes of a task whose attempt failed: due again after its
// backoff, or dead for reason when that was the last attempt.
// random is in [0, 1).
func (r retries) failed(n store.Nack, reason store.Reason, random float64) store.Nack {
	if r.attempt > r.max {
		n.Reason = reason
		return n
	}
	n.Delay = wait(r.backoff, r.attempt, random)
	return n
}

// nackFor translates a worker's nack or release.
func nackFor(s *Settlement, token store.Token, r retries, random float64) store.Nack {
	n := store.Nack{ID: s.ID, Token: token, Error: cut(s.Error, maxErrorBytes), Outcome: store.OutcomeFailed}
	switch {
	case s.Kind == SettleRelease:
		n.Uncount, n.Outcome = true, store.OutcomeReleased
		if s.Unseen {
			n.Outcome = store.OutcomeNone
		}
	case s.Permanent:
		n.Reason = store.ReasonPermanent
	default:
		n = r.failed(n, store.ReasonMaxRetries, random)
	}
	if s.Delay != nil && n.Reason == store.ReasonNone {
		n.Delay = *s.Delay
	}
	return n
}
