package oidc

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	jose "github.com/go-jose/go-jose/v4"
)

// Config says whose tokens count.
type Config struct {
	// Issuers are the URLs of those who sign.
	Issuers []string

	// Audience is what tokens are for: the name of this fleet, and not the client id of a
	// program, which tokens for that program's own use have.
	Audience string

	// Algorithms are those that signatures may have. Defaults to all of Algorithms.
	Algorithms []string

	// Transport is how issuers are asked. Defaults to http.DefaultTransport.
	Transport http.RoundTripper
}

// Algorithms are those that may be asked for. Each has a key that only the issuer knows.
var Algorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"} //nolint:gochecknoglobals // a constant list

func (c *Config) complete() error {
	if c.Transport == nil {
		c.Transport = http.DefaultTransport
	}
	if len(c.Algorithms) == 0 {
		c.Algorithms = Algorithms
	}
	for _, a := range c.Algorithms {
		if !slices.Contains(Algorithms, a) {
			return fmt.Errorf("algorithm %q is none of %v", a, Algorithms)
		}
	}
	switch {
	case len(c.Issuers) == 0:
		return errors.New("there is no issuer")
	case c.Audience == "":
		return errors.New("there is no audience: tokens for other services would count")
	}
	for _, text := range c.Issuers {
		switch u, err := url.Parse(text); {
		case strings.Contains(text, "@"): // logs have the URL, and tokens
			return errors.New("an issuer has a password in its URL")
		case err != nil || u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "":
			return fmt.Errorf("issuer %q is no https URL", text)
		}
	}
	return nil
}

func (c *Config) signatures() []jose.SignatureAlgorithm {
	all := make([]jose.SignatureAlgorithm, len(c.Algorithms))
	for i, a := range c.Algorithms {
		all[i] = jose.SignatureAlgorithm(a)
	}
	return all
}
