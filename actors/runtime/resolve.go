package runtime

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/ddq-io/ddq/store"
)

// ResolveFor is how long a store call with unknown outcome is repeated.
const ResolveFor = 3 * time.Second

// Resolve runs a store call, and repeats it while its outcome is unknown: every
// mutating call of a store is safe to repeat with the same arguments. When the
// outcome stays unknown the error says so, whatever the last try returned.
// repeated tells that an answer was lost on the way: what the call did first is
// not in the results.
func (rt *Runtime) Resolve(ctx context.Context, call func() error) (repeated bool, err error) {
	unknown := false
	_, err = backoff.Retry(ctx, func() (struct{}, error) {
		err := call()
		switch {
		case errors.Is(err, store.ErrUnknown):
			unknown = true
			return struct{}{}, err
		case unknown && errors.Is(err, store.ErrUnavailable):
			return struct{}{}, err
		case err != nil:
			return struct{}{}, backoff.Permanent(err)
		}
		return struct{}{}, nil
	}, backoff.WithMaxElapsedTime(ResolveFor), backoff.WithBackOff(newResolvePause(rt.Random)))
	if unknown && (errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrSealed) || errors.Is(err, store.ErrFull)) { // it was neither sealed nor full for the first try
		err = errors.Join(store.ErrUnknown, err)
	}
	return unknown, err
}

// resolvePause is how long to wait between the tries of a call: longer each time, and
// never the same for the calls of many shards.
type resolvePause struct {
	*backoff.ExponentialBackOff
	random func() float64
}

func newResolvePause(random func() float64) resolvePause {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval, b.RandomizationFactor = 20*time.Millisecond, 500*time.Millisecond, 0
	return resolvePause{b, random}
}

// NextBackOff returns the next pause, up to a half more or less.
func (p resolvePause) NextBackOff() time.Duration {
	return time.Duration(float64(p.ExponentialBackOff.NextBackOff()) * (0.5 + p.random()))
}
