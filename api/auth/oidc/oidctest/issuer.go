// Package oidctest is an issuer of tokens within the process, for tests. It needs no network.
package oidctest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"

	jose "github.com/go-jose/go-jose/v4"
)

// Audience is whom tokens of Claims are for.
const Audience = "ddq"

// Issuer signs tokens, and answers with its keys over its own RoundTrip.
type Issuer struct {
	// URL is its name.
	URL string
	// Away makes every request fail.
	Away atomic.Bool
	// Asked is how often somebody asked for the keys.
	Asked atomic.Int64

	mu      sync.Mutex
	made    int               // guarded by mu
	keys    []jose.JSONWebKey // public ones; guarded by mu
	signing jose.JSONWebKey   // guarded by mu
	more    []json.RawMessage // further keys; guarded by mu
}

// New is an issuer with one key.
func New() *Issuer {
	i := &Issuer{URL: "https://issuer.test"}
	i.Rotate(false)
	return i
}

// Rotate makes another key to sign with. The former ones are shown still if they are kept.
func (i *Issuer) Rotate(keep bool) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.made++
	i.signing = jose.JSONWebKey{Key: private, KeyID: fmt.Sprint("key-", i.made), Algorithm: "ES256", Use: "sig"}
	if !keep {
		i.keys = nil
	}
	i.keys = append(i.keys, i.signing.Public())
}

// Add shows another key, as it is.
func (i *Issuer) Add(raw string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.more = append(i.more, json.RawMessage(raw))
}

// Key is what it signs with.
func (i *Issuer) Key() jose.JSONWebKey {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.signing
}

// Claims are those of a token that counts for ten minutes.
func (i *Issuer) Claims(subject string, groups ...string) map[string]any {
	now := time.Now()
	return map[string]any{
		"iss": i.URL, "sub": subject, "aud": Audience, "groups": groups, "iat": now.Unix(), "exp": now.Add(10 * time.Minute).Unix(),
	}
}

// Sign is a token with these claims.
func (i *Issuer) Sign(claims map[string]any) string {
	return Sign(i.Key(), "ES256", claims, nil)
}

// Sign is a token under any key, with further headers.
func Sign(key jose.JSONWebKey, algorithm string, claims any, headers map[jose.HeaderKey]any) string {
	o := (&jose.SignerOptions{}).WithType("JWT")
	for name, value := range headers {
		o = o.WithHeader(name, value)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(algorithm), Key: key}, o)
	if err != nil {
		panic(err)
	}
	text, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	signed, err := signer.Sign(text)
	if err != nil {
		panic(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		panic(err)
	}
	return token
}

// RoundTrip answers a request.
func (i *Issuer) RoundTrip(r *http.Request) (*http.Response, error) {
	if i.Away.Load() {
		return nil, errors.New("no route to the issuer")
	}
	w := httptest.NewRecorder()
	i.ServeHTTP(w, r)
	return w.Result(), nil
}

// ServeHTTP answers with the discovery document, or with the keys.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var answer any
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		answer = map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys", "id_token_signing_alg_values_supported": []string{"ES256"}}
	case "/keys":
		i.Asked.Add(1)
		answer = map[string]any{"keys": i.all()}
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

func (i *Issuer) all() []any {
	i.mu.Lock()
	defer i.mu.Unlock()
	all := make([]any, 0, len(i.keys)+len(i.more))
	for _, k := range i.keys {
		all = append(all, k)
	}
	for _, raw := range i.more {
		all = append(all, raw)
	}
	return all
}
