package oidc

import (
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	gooidc "github.com/coreos/go-oidc/v3/oidc"
	jose "github.com/go-jose/go-jose/v4"

	"github.com/ddq-io/ddq/api/auth"
)

const (
	maxToken   = 8 << 10
	maxSubject = 256
	// leeway is how far the clock of an issuer may be off.
	leeway = 30 * time.Second
)

// Issuers tells whose a token is. It owns one goroutine for each issuer, from Start to Stop.
type Issuers struct {
	config Config
	by     map[string]*issuer
	change atomic.Int64
	loops  sync.WaitGroup
	cancel context.CancelFunc
}

// New checks the configuration. No issuer is asked before Start.
func New(config Config, log *slog.Logger) (*Issuers, error) {
	if err := config.complete(); err != nil {
		return nil, err
	}
	s := &Issuers{config: config, by: make(map[string]*issuer)}
	client := &http.Client{Transport: secured{config.Transport}, Timeout: fetchTimeout}
	for _, url := range config.Issuers {
		s.by[url] = newIssuer(url, client, func() { s.change.Add(1) }, log)
	}
	return s, nil
}

// Start asks the issuers for their keys, and goes on to do so.
func (s *Issuers) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	for _, i := range s.by {
		s.loops.Go(func() { i.run(ctx) })
	}
}

// Stop waits for the goroutines. It may be called twice, and without Start.
func (s *Issuers) Stop() {
	if s.cancel != nil {
		s.cancel()
	}
	s.loops.Wait()
}

// Change is a number that is another one when keys are.
func (s *Issuers) Change() int64 { return s.change.Load() }

// Counts reports whether the key that signed a token is one of its issuer's still.
func (s *Issuers) Counts(id *auth.Identity) bool {
	i := s.by[id.Issuer]
	return i != nil && i.has(id.Key)
}

// Verify returns whose a token is. ErrBadToken, ErrAway.
func (s *Issuers) Verify(ctx context.Context, token string) (*auth.Identity, error) {
	if len(token) > maxToken {
		return nil, ErrBadToken
	}
	signed, err := jose.ParseSignedCompact(token, s.config.signatures())
	if err != nil || len(signed.Signatures) != 1 || !plain(&signed.Signatures[0].Protected) {
		return nil, ErrBadToken
	}
	var said struct {
		Issuer string `json:"iss"`
	}
	if json.Unmarshal(signed.UnsafePayloadWithoutVerification(), &said) != nil {
		return nil, ErrBadToken
	}
	from := s.by[said.Issuer]
	if from == nil {
		return nil, ErrBadToken
	}
	header := &signed.Signatures[0].Protected
	k, err := from.find(ctx, header.KeyID, header.Algorithm)
	if err != nil {
		return nil, err
	}
	verifier := gooidc.NewVerifier(from.url, &gooidc.StaticKeySet{PublicKeys: []crypto.PublicKey{k.Key}}, &gooidc.Config{
		ClientID: s.config.Audience, SupportedSigningAlgs: s.config.Algorithms, SkipExpiryCheck: true, // times have a leeway here
	})
	checked, err := verifier.Verify(ctx, token)
	if err != nil {
		return nil, ErrBadToken
	}
	id, err := identify(checked, time.Now())
	if err != nil {
		return nil, ErrBadToken
	}
	id.Key = k.print
	return id, nil
}

// plain reports whether a header asks for nothing but a signature by a key of the issuer. That
// which a token says of where keys are is not looked at.
func plain(h *jose.Header) bool {
	if _, asks := h.ExtraHeaders["crit"]; asks {
		return false
	}
	if _, asks := h.ExtraHeaders["b64"]; asks {
		return false
	}
	kind, given := h.ExtraHeaders[jose.HeaderType]
	if !given {
		return true
	}
	text, _ := kind.(string)
	text = strings.TrimPrefix(strings.ToLower(text), "application/")
	return text == "jwt" || text == "at+jwt"
}

// times are the claims about when a token counts, in seconds. Texts are not numbers.
type times struct {
	Expires   *float64 `json:"exp"`
	NotBefore *float64 `json:"nbf"`
	Issued    *float64 `json:"iat"`
}

var errTimes = errors.New("the token does not count now")

// identify reads the claims of a token whose signature, issuer and audience are right.
func identify(t *gooidc.IDToken, now time.Time) (*auth.Identity, error) {
	var when times
	claims := make(map[string]any)
	if err := errors.Join(t.Claims(&when), t.Claims(&claims)); err != nil {
		return nil, err
	}
	if when.Expires == nil || !now.Before(instant(*when.Expires).Add(leeway)) || tooSoon(when.NotBefore, now) || tooSoon(when.Issued, now) {
		return nil, errTimes
	}
	if t.Subject == "" || len(t.Subject) > maxSubject || !utf8.ValidString(t.Subject) || strings.ContainsFunc(t.Subject, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return nil, errors.New("the token has no subject")
	}
	return &auth.Identity{
		Kind: auth.KindIssuer, Name: t.Issuer + " " + t.Subject, Issuer: t.Issuer,
		Expires: instant(*when.Expires).Add(leeway), Claims: texts(claims),
	}, nil
}

func tooSoon(seconds *float64, now time.Time) bool {
	return seconds != nil && now.Before(instant(*seconds).Add(-leeway))
}

// instant is that many seconds after 1970. What is too far away is a time that is, too.
func instant(seconds float64) time.Time {
	const most = 1 << 38
	return time.UnixMilli(int64(math.Max(-most, math.Min(most, seconds)) * 1000))
}

// texts are the claims that are a text, or a list with texts.
func texts(claims map[string]any) map[string][]string {
	out := make(map[string][]string)
	for name, value := range claims {
		switch v := value.(type) {
		case string:
			out[name] = []string{v}
		case []any:
			for _, item := range v {
				if text, ok := item.(string); ok {
					out[name] = append(out[name], text)
				}
			}
		}
	}
	return out
}
