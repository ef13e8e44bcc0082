package access

import (
	"context"
	"reflect"
	"time"

	"golang.org/x/time/rate"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/auth"
)

// Session is a principal while its credential lasts.
type Session struct {
	*auth.Principal
	hash    auth.Hash
	version int64 // of its record; guarded by the lock of Tokens

	pace *rate.Limiter // of its calls; nil: no bound

	gone context.Context // done when the credential was revoked
	end  context.CancelFunc
}

func newSession(p *auth.Principal) *Session {
	s := &Session{Principal: p}
	if p.CallsPerSecond > 0 {
		s.pace = rate.NewLimiter(rate.Limit(p.CallsPerSecond), p.CallsPerSecond)
	}
	s.gone, s.end = context.WithCancel(context.Background())
	return s
}

// of reports whether a session is that of a token as it is now. Its record may be another one, which
// is sealed with another key.
func (s *Session) of(t *auth.Token) bool {
	return s.hash.Equal(t.Hash) && reflect.DeepEqual(s.Principal, t.Principal())
}

// Gone is done when the credential was revoked or changed. That it expires is seen from its
// principal.
func (s *Session) Gone() context.Context { return s.gone }

// Valid reports whether the credential still counts at now.
func (s *Session) Valid(now time.Time) bool {
	return s.gone.Err() == nil && (s.Expires.IsZero() || now.Before(s.Expires))
}

// Take counts a call of a session, and says when it is one too many in a second.
func (s *Session) Take(now time.Time) *problem.Error {
	if s.pace == nil || s.pace.AllowN(now, 1) {
		return nil
	}
	return s.tooFast(now)
}

func (s *Session) tooFast(now time.Time) *problem.Error {
	return &problem.Error{
		Kind: problem.Exhausted, Reason: "RATE_LIMITED", Message: "more calls in a second than the token may make",
		RetryAfter: pause(1-s.pace.TokensAt(now), s.CallsPerSecond),
	}
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
