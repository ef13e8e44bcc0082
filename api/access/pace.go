package access

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/actors/problem"
)

func rateLimited(message string, wait time.Duration) *problem.Error {
	return &problem.Error{Kind: problem.Exhausted, Reason: "RATE_LIMITED", Message: message, RetryAfter: wait}
}

// Take counts a call of a session, and says when it is one too many in a second.
func (s *Session) Take(now time.Time) *problem.Error {
	if s.pace == nil || s.pace.AllowN(now, 1) {
		return nil
	}
	return s.tooFast(now)
}

func (s *Session) tooFast(now time.Time) *problem.Error {
	return rateLimited("more calls in a second than the token may make", pause(1-s.pace.TokensAt(now), s.CallsPerSecond))
}

// Await counts a message of a stream of a session, and waits until it is not one too many.
func (s *Session) Await(ctx context.Context) error {
	if s.pace == nil || s.pace.Wait(ctx) == nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.tooFast(time.Now()) // the deadline of the stream is nearer
}

// Weighs reports whether the payloads that a session sends have a bound.
func (s *Session) Weighs() bool { return s.volume != nil }

// TakeBytes counts the bytes of the payloads in a call of a session that weighs, and says when they are too many
// in a second.
func (s *Session) TakeBytes(now time.Time, n int) *problem.Error {
	if wait, taken := s.volume.take(n, now, 0); !taken {
		return tooMuch(wait)
	}
	return nil
}

// AwaitBytes counts the bytes of the payloads in a message of a stream of a session that weighs, and waits until
// they are not too many.
func (s *Session) AwaitBytes(ctx context.Context, n int) error {
	now, patience := time.Now(), forever
	if end, bounded := ctx.Deadline(); bounded {
		patience = end.Sub(now)
	}
	wait, taken := s.volume.take(n, now, patience)
	if !taken {
		return tooMuch(wait)
	}
	return sleep(ctx, wait)
}

func tooMuch(wait time.Duration) *problem.Error {
	return rateLimited("more bytes of payloads in a second than the token may send", wait)
}
