package oidc

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// keepKeys is how long keys are not asked for again, unless one is not known.
	keepKeys = 10 * time.Minute
	// askAgain is the least time between two askings for keys that are not known.
	askAgain = 30 * time.Second
	// retry is the time between askings that fail.
	retry = 5 * time.Second
	// staleAfter is how long keys count while their issuer is away.
	staleAfter = 24 * time.Hour
)

// Reasons why a token is refused.
var (
	ErrBadToken = errors.New("not a valid token of an issuer")
	// ErrAway is when the keys of an issuer cannot be had.
	ErrAway = errors.New("the issuer is away")
)

// issuer follows the keys of one. It owns one goroutine from start until the context ends.
type issuer struct {
	url     string
	client  *http.Client
	log     *slog.Logger
	changed func() // the keys are not what they were

	want chan struct{} // a key is not known; holds one

	mu     sync.Mutex
	keys   []key         // guarded by mu
	asked  time.Time     // when the last asking ended; zero: none did; guarded by mu
	good   time.Time     // when the last good one did; guarded by mu
	failed bool          // the last one; guarded by mu
	round  chan struct{} // closed at the end of the next one; guarded by mu
}

func newIssuer(url string, client *http.Client, changed func(), log *slog.Logger) *issuer {
	return &issuer{url: url, client: client, log: log, changed: changed, want: make(chan struct{}, 1), round: make(chan struct{})}
}

func (i *issuer) run(ctx context.Context) {
	for {
		keys, err := fetch(ctx, i.client, i.url)
		if ctx.Err() != nil {
			return
		}
		i.learn(keys, err)
		pause, want := keepKeys, i.want
		if err != nil {
			pause, want = retry, nil
		}
		select {
		case <-time.After(pause):
		case <-want:
		case <-ctx.Done():
			return
		}
	}
}

func (i *issuer) learn(keys []key, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := time.Now()
	if failed := err != nil; failed != i.failed {
		if i.failed = failed; failed {
			i.log.Warn("issuer of tokens is away; keys that are known go on", "issuer", i.url, "err", short(err))
		} else {
			i.log.Info("issuer of tokens is back", "issuer", i.url)
		}
	}
	if err == nil {
		i.good = now
		if !slices.EqualFunc(keys, i.keys, func(a, b key) bool { return a.print == b.print && a.KeyID == b.KeyID && a.Algorithm == b.Algorithm }) {
			i.keys = keys
			i.changed()
		}
	}
	i.asked = now
	close(i.round)
	i.round = make(chan struct{})
}

// short is an error without the rest of a page that it may have.
func short(err error) string {
	const most = 300
	text := err.Error()
	return text[:min(len(text), most)]
}

// find returns the key that a token names. For one that is not known it waits until the issuer
// was asked, if that may be.
func (i *issuer) find(ctx context.Context, kid, algorithm string) (key, error) {
	k, known, round := i.look(kid, algorithm)
	if round != nil {
		select {
		case <-round:
		case <-ctx.Done():
			return key{}, ErrAway
		}
		k, known, _ = i.look(kid, algorithm)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case known && time.Since(i.good) <= staleAfter:
		return k, nil
	case known || i.failed || i.asked.IsZero():
		return key{}, ErrAway
	}
	return key{}, ErrBadToken
}

// look returns a key, or what to wait for: the end of an asking.
func (i *issuer) look(kid, algorithm string) (k key, known bool, round <-chan struct{}) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if k, known = i.named(kid, algorithm); known {
		return k, true, nil
	}
	if i.asked.IsZero() {
		return key{}, false, i.round // the first one is under way
	}
	if i.failed || time.Since(i.asked) < askAgain {
		return key{}, false, nil
	}
	select {
	case i.want <- struct{}{}:
	default:
	}
	return key{}, false, i.round
}

// named finds a key for an algorithm by its id. A token may leave the id out where there is one
// key. mu is held.
func (i *issuer) named(kid, algorithm string) (key, bool) {
	if kid == "" && len(i.keys) != 1 {
		return key{}, false
	}
	for _, k := range i.keys {
		if (kid == "" || k.KeyID == kid) && (k.Algorithm == "" || k.Algorithm == algorithm) {
			return k, true
		}
	}
	return key{}, false
}

// has reports whether a key is one of the issuer's still.
func (i *issuer) has(print thumbprint) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return time.Since(i.good) <= staleAfter && slices.ContainsFunc(i.keys, func(k key) bool { return k.print == print })
}
