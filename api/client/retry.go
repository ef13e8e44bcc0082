package client

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v5"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

// safety says which failures of a call may be repeated.
type safety bool

const (
	once       safety = false // only refusals that say when to come back
	idempotent safety = true  // also lost connections and unknown outcomes
)

// caller makes calls of servers, and repeats them.
type caller struct {
	cfg   Config
	addr  string // that Dial was given
	fleet bool   // it was given several servers
}

// do makes a call within the client's timeout and repeats it while that is
// safe and time is left.
func (c *caller) do(ctx context.Context, s safety, op func(context.Context) error) error {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	return c.unanswered(plain(c.repeat(ctx, s, func() *Error {
		return fromRPC(op(ctx))
	})), "call of the server")
}

// answerOf makes a call, repeats it while that is safe, and returns its answer: nil when it failed.
func answerOf[Q, A any](ctx context.Context, c *caller, s safety, call func(context.Context, Q, ...grpc.CallOption) (*A, error), q Q) (a *A, err error) {
	err = c.do(ctx, s, func(ctx context.Context) error {
		a, err = call(ctx, q)
		return err
	})
	return a, err
}

// repeat runs op until it succeeds, fails for good, or time is over.
func (c *caller) repeat(ctx context.Context, s safety, op func() *Error) *Error {
	var last *Error
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		last = op()
		return struct{}{}, c.pace(last, s)
	}, backoff.WithBackOff(newBackoff()), backoff.WithMaxElapsedTime(max(c.cfg.MaxElapsed, 0)))
	if err != nil && ctx.Err() != nil {
		return last.until(ctx.Err())
	}
	return last
}

// pace tells the backoff library what to do about e.
func (c *caller) pace(e *Error, s safety) error {
	switch {
	case e == nil:
		return nil
	case c.cfg.MaxElapsed < 0, !e.repeatable(bool(s)):
		return backoff.Permanent(e)
	case e.Code == codes.Unavailable && c.fleet:
		return e // when to come back to that server, while another one may be there now
	case e.RetryAfter > 0:
		return &backoff.RetryAfterError{Duration: spread(e.RetryAfter)}
	}
	return e
}

// spread lengthens d by up to a half, so that callers who were refused
// together do not come back together.
func spread(d time.Duration) time.Duration {
	return d + rand.N(d/2+1)
}

func newBackoff() *backoff.ExponentialBackOff {
	return &backoff.ExponentialBackOff{
		InitialInterval:     50 * time.Millisecond,
		RandomizationFactor: 1, // full jitter: from nothing to twice the interval
		Multiplier:          2,
		MaxInterval:         2 * time.Second,
	}
}

// bounded gives ctx the client's timeout unless it has a deadline.
func (c *caller) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, c.cfg.Timeout)
}
