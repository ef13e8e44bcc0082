package token

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Token is what shows who calls.
type Token struct {
	Text    string
	Expires time.Time // zero: nobody knows, or never
}

func (t Token) counts(now time.Time) bool {
	return t.Text != "" && (t.Expires.IsZero() || now.Before(t.Expires))
}

// Fetch gets a token. It is called by one goroutine at a time.
type Fetch func(ctx context.Context) (Token, error)

const (
	fetchTimeout = 10 * time.Second
	// fetchAgain is the pause after a failure, and the least time between tokens that an issuer is asked for.
	fetchAgain = 5 * time.Second
)

// Source gives calls the token of their moment. It owns no goroutine: the call that finds a token due gets the
// next one, while others go on with that one. Its methods are safe for concurrent use.
type Source struct {
	fetch Fetch
	every time.Duration // between fetches; 0: when a quarter of a token's life is left
	pause time.Duration // before a token that was refused is fetched again, at least
	turn  chan struct{} // holds one value during a fetch, which waits with a context

	mu      sync.Mutex
	now     Token     // guarded by mu
	err     error     // of the last fetch; guarded by mu
	fetched time.Time // when that was; guarded by mu
	due     time.Time // when the next one is; zero: none is; guarded by mu
}

// Issued returns a source of tokens that fetch gets: the next one when a quarter of a token's life is left, or
// when a server has refused it.
func Issued(fetch Fetch) *Source {
	return &Source{fetch: fetch, pause: fetchAgain, turn: make(chan struct{}, 1)}
}

// Token returns the token to show now. An error has the status UNAVAILABLE, unless ctx ended: there is none yet,
// or no more.
func (s *Source) Token(ctx context.Context) (string, error) {
	text, settled, err := s.known(time.Now())
	if settled {
		return text, err
	}
	if !s.begin(ctx, text != "") {
		if text != "" {
			return text, nil // somebody else gets the next one
		}
		return "", status.FromContextError(ctx.Err()).Err()
	}
	defer s.end()
	if text, settled, err := s.known(time.Now()); settled { // somebody else was first
		return text, err
	}
	s.next(ctx)
	if text, _, err = s.known(time.Now()); text == "" && err == nil {
		return "", status.FromContextError(ctx.Err()).Err()
	}
	return text, err
}

// begin waits for the caller's turn to fetch, unless others are not to be waited for. It reports false when
// there is none before ctx ends.
func (s *Source) begin(ctx context.Context, hasty bool) bool {
	select {
	case s.turn <- struct{}{}:
		return true
	default:
	}
	if hasty {
		return false
	}
	select {
	case s.turn <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *Source) end() { <-s.turn }

// known is the token that counts, or else why there is none, and whether that is so until the next fetch is due.
func (s *Source) known(now time.Time) (text string, settled bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	waits := s.due.IsZero() || now.Before(s.due)
	switch {
	case s.now.counts(now):
		return s.now.Text, waits, nil
	case s.err != nil:
		return "", waits, status.Errorf(codes.Unavailable, "no token: %v", s.err)
	}
	return "", false, nil
}

// next fetches a token. It is the caller's turn. A failure is noted unless it is that ctx ended.
func (s *Source) next(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	got, err := s.fetch(limited)
	now := time.Now()
	if err == nil && !got.counts(now) {
		err = errors.New("the one that came has ended already")
	}
	if err != nil && ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fetched, s.err = now, err
	if err != nil {
		s.due = now.Add(fetchAgain)
		return
	}
	s.now, s.due = got, s.dueAfter(got, now)
}

// dueAfter is when to fetch again after a token that came at now; zero: not before it is refused.
func (s *Source) dueAfter(got Token, now time.Time) time.Time {
	switch {
	case s.every > 0:
		return now.Add(s.every)
	case got.Expires.IsZero():
		return time.Time{}
	}
	return now.Add(got.Expires.Sub(now) * 3 / 4)
}

// replaced reports whether there is something else to show than a token that a server has refused, now or once
// the next one can be had. It fetches one for that.
func (s *Source) replaced(ctx context.Context, refused string) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout) // a stream that ended has a context that did
	defer cancel()
	if !s.begin(ctx, false) {
		return true
	}
	defer s.end()
	if s.same(refused) && s.sinceFetch() >= s.pause {
		s.next(ctx)
	}
	return !s.same(refused)
}

// same reports whether a token is the one to show.
func (s *Source) same(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err == nil && s.now.Text == text
}

func (s *Source) sinceFetch() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.fetched)
}
