package client

import (
	"context"

	"github.com/cenkalti/backoff/v5"
	"google.golang.org/grpc/codes"

	"github.com/ddq-io/ddq/api/client/internal/call"
)

// caller makes calls of servers, and repeats them.
type caller struct {
	cfg   Config
	addr  string // that Dial was given
	fleet bool   // it was given several servers
}

// do makes a call within the client's timeout and repeats it while that is
// safe and time is left.
func (c *caller) do(ctx context.Context, s call.Safety, op func(context.Context) error) error {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	return c.unanswered(plain(c.repeat(ctx, s, func() *Error {
		return fromRPC(op(ctx))
	})), "call of the server")
}

// repeat runs op until it succeeds, fails for good, or time is over.
func (c *caller) repeat(ctx context.Context, s call.Safety, op func() *Error) *Error {
	var last *Error
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		last = op()
		return struct{}{}, c.pace(last, s)
	}, backoff.WithBackOff(call.NewBackoff()), backoff.WithMaxElapsedTime(max(c.cfg.MaxElapsed, 0)))
	if err != nil && ctx.Err() != nil {
		return last.until(ctx.Err())
	}
	return last
}

// pace tells the backoff library what to do about e.
func (c *caller) pace(e *Error, s call.Safety) error {
	switch {
	case e == nil:
		return nil
	case c.cfg.MaxElapsed < 0, !e.repeatable(bool(s)):
		return backoff.Permanent(e)
	case e.Code == codes.Unavailable && c.fleet:
		return e // when to come back to that server, while another one may be there now
	case e.RetryAfter > 0:
		return &backoff.RetryAfterError{Duration: call.Spread(e.RetryAfter)}
	}
	return e
}

// bounded gives ctx the client's timeout unless it has a deadline.
func (c *caller) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, c.cfg.Timeout)
}
