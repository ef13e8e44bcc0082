package call

import (
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Spread lengthens d by up to a half, so that callers who were refused
// together do not come back together.
func Spread(d time.Duration) time.Duration {
	return d + rand.N(d/2+1)
}

// NewBackoff returns the pauses between calls that are repeated.
func NewBackoff() *backoff.ExponentialBackOff {
	return &backoff.ExponentialBackOff{
		InitialInterval:     50 * time.Millisecond,
		RandomizationFactor: 1, // full jitter: from nothing to twice the interval
		Multiplier:          2,
		MaxInterval:         2 * time.Second,
	}
}
