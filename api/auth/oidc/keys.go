package oidc

import (
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	gooidc "github.com/coreos/go-oidc/v3/oidc"
	jose "github.com/go-jose/go-jose/v4"
)

const (
	fetchTimeout = 5 * time.Second
	maxAnswer    = 1 << 20
	maxKeys      = 100
)

// thumbprint names a key by what it is.
type thumbprint = [32]byte

// key is one of an issuer.
type key struct {
	jose.JSONWebKey
	print thumbprint
}

// fetch asks an issuer for its keys.
func fetch(ctx context.Context, client *http.Client, url string) ([]key, error) {
	ctx, cancel := context.WithTimeout(gooidc.ClientContext(ctx, client), fetchTimeout)
	defer cancel()
	provider, err := gooidc.NewProvider(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("discovery of %s: %w", url, err)
	}
	var found struct {
		Keys string `json:"jwks_uri"`
	}
	if err := provider.Claims(&found); err != nil {
		return nil, fmt.Errorf("discovery of %s: %w", url, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, found.Keys, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("keys of %s: %w", url, err)
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("keys of %s: %w", url, err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("keys of %s: %w", url, err)
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("keys of %s: %s", url, answer.Status)
	}
	return readKeys(text)
}

// readKeys leaves out what does not verify signatures, and what cannot be read: an issuer
// may have keys of a newer kind.
func readKeys(text []byte) ([]key, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, fmt.Errorf("key set: %w", err)
	}
	var all []key
	for _, raw := range set.Keys[:min(len(set.Keys), maxKeys)] {
		var k key
		if k.UnmarshalJSON(raw) != nil || !k.Valid() || !k.IsPublic() || k.Use != "" && k.Use != "sig" {
			continue
		}
		sum, err := k.Thumbprint(crypto.SHA256)
		if err != nil {
			continue
		}
		k.print = thumbprint(sum)
		all = append(all, k)
	}
	if len(all) == 0 {
		return nil, errors.New("key set without a key that verifies signatures")
	}
	return all, nil
}

// secured lets requests through that are encrypted, and bounds what comes back.
type secured struct{ http.RoundTripper }

var errPlain = errors.New("only https is asked")

// RoundTrip sends a request.
func (s secured) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" {
		return nil, errPlain
	}
	answer, err := s.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Body = http.MaxBytesReader(nil, answer.Body, maxAnswer)
	}
	return answer, err
}
