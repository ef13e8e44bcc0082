package access

import (
	"context"
	"reflect"
	"time"

	"golang.org/x/time/rate"

	"github.com/ddq-io/ddq/api/auth"
)

// Session is a principal while its credential lasts.
type Session struct {
	*auth.Principal
	hash    auth.Hash
	version int64 // of its record; guarded by the lock of Tokens

	pace   *rate.Limiter // of its calls; nil: no bound
	volume *volume       // of the payloads in them; nil: no bound

	gone context.Context // done when the credential was revoked
	end  context.CancelFunc
}

func newSession(p *auth.Principal) *Session {
	s := &Session{Principal: p}
	if p.CallsPerSecond > 0 {
		s.pace = rate.NewLimiter(rate.Limit(p.CallsPerSecond), p.CallsPerSecond)
	}
	if p.BytesPerSecond > 0 {
		s.volume = newVolume(p.BytesPerSecond)
	}
	s.gone, s.end = context.WithCancel(context.Background())
	return s
}

// of reports whether a session is that of a token as it is now. Its record may be another one, which
// is sealed with another key.
func (s *Session) of(t *auth.Token) bool {
	return s.hash.Equal(t.Hash) && reflect.DeepEqual(s.Principal, t.Principal())
}

// after is the session of a token as it is now, if s, which may be nil, was that before.
func (s *Session) after(t *auth.Token) *Session {
	if s != nil {
		if s.of(t) {
			return s
		}
		if next, ok := s.shortened(t); ok {
			return next
		}
	}
	next := newSession(t.Principal())
	next.hash = t.Hash
	return next
}

// shortened is the session of a token that is as it was, but that it ends earlier, as one does that
// was rotated. What was opened in s goes on until then, and ends with either of the two; ok is false
// for a token that has changed in another way.
func (s *Session) shortened(t *auth.Token) (next *Session, ok bool) {
	next, was := new(Session), *s.Principal
	*next, next.Principal = *s, t.Principal()
	end := next.Expires
	if end.IsZero() || !was.Expires.IsZero() && was.Expires.Before(end) {
		return nil, false
	}
	was.Expires = end
	if !s.hash.Equal(t.Hash) || !reflect.DeepEqual(&was, next.Principal) {
		return nil, false
	}
	time.AfterFunc(time.Until(end), s.end)
	return next, true
}

// Gone is done when the credential was revoked or changed. That it expires is seen from its
// principal.
func (s *Session) Gone() context.Context { return s.gone }

// Valid reports whether the credential still counts at now.
func (s *Session) Valid(now time.Time) bool {
	return s.gone.Err() == nil && (s.Expires.IsZero() || now.Before(s.Expires))
}
