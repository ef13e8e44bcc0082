package node

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ddq-io/ddq/api/access"
	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/api/auth/certs"
	"github.com/ddq-io/ddq/api/auth/oidc"
)

// OIDCConfig says whose tokens count beside those that the server made.
type OIDCConfig struct {
	Issuers    []string
	Audience   string
	Algorithms []string
	CA         string

	transport http.RoundTripper // set by check
}

func (o *OIDCConfig) flags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.Issuers, "oidc-issuer", nil, "https URLs of issuers whose tokens count, with --auth token,oidc")
	fs.StringVar(&o.Audience, "oidc-audience", "", "what such tokens are for: the name of this fleet there, not the client id of a program")
	fs.StringSliceVar(&o.Algorithms, "oidc-alg", nil, "signatures that count (default "+strings.Join(oidc.Algorithms, ",")+")")
	fs.StringVar(&o.CA, "oidc-ca", "", "file of the authorities that signed the certificates of issuers (default the system's)")
}

func (o *OIDCConfig) given() bool {
	return len(o.Issuers) > 0 || o.Audience != "" || len(o.Algorithms) > 0 || o.CA != ""
}

// config is that of package oidc.
func (o *OIDCConfig) config() oidc.Config {
	return oidc.Config{Issuers: o.Issuers, Audience: o.Audience, Algorithms: o.Algorithms, Transport: o.transport}
}

func (o *OIDCConfig) check(on bool) error {
	if !on {
		if o.given() {
			return wrongf("--oidc-issuer, --oidc-audience, --oidc-alg and --oidc-ca need --auth token,oidc")
		}
		return nil
	}
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return errors.New("the transport of package http was replaced")
	}
	transport = transport.Clone()
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CA != "" {
		text, err := os.ReadFile(o.CA)
		if err != nil {
			return wrongf("--oidc-ca: %v", err)
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(text) {
			return wrongf("--oidc-ca: %s has no certificate in PEM", o.CA)
		}
		transport.TLSClientConfig.RootCAs = roots
	}
	o.transport = transport
	if _, err := oidc.New(o.config(), slog.New(slog.DiscardHandler)); err != nil {
		return wrongf("--auth oidc: %v; it needs --oidc-issuer and --oidc-audience", err)
	}
	return nil
}

// has reports whether callers may say who they are in a way.
func (a *AuthConfig) has(way string) bool {
	return slices.Contains(strings.Split(a.Mode, ","), way)
}

// checkWays says what is wrong with --auth.
func (a *AuthConfig) checkWays(cfg *Config) error {
	ways := strings.Split(a.Mode, ",")
	for _, way := range ways {
		if !slices.Contains([]string{authOff, authToken, authOIDC, authMTLS}, way) {
			return wrongf("--auth is token or off, and beside token oidc and mtls, not %q", a.Mode)
		}
	}
	switch {
	case len(ways) > 1 && a.has(authOff):
		return wrongf("--auth off goes with nothing else")
	case !a.has(authOff) && !a.has(authToken):
		return wrongf("--auth %s: add token, by which it is said what such callers may do: --auth token,%[1]s", a.Mode)
	case a.has(authMTLS) && clientAuths[cfg.TLS.ClientAuth] == tls.NoClientCert:
		return wrongf("--auth mtls needs --tls-client-auth request or require, and --tls-client-ca")
	}
	return a.OIDC.check(a.has(authOIDC))
}

// nodes are the names of --node-identity.
func (a *AuthConfig) nodes() auth.Subjects {
	names := make(auth.Subjects, len(a.Nodes))
	for i, name := range a.Nodes {
		names[i] = auth.Subject(name)
	}
	return names
}

// checkNodes says what is wrong with --node-identity.
func (a *AuthConfig) checkNodes(cfg *Config) error {
	switch {
	case len(a.Nodes) == 0:
		return nil
	case !a.on():
		return wrongf("--node-identity needs --auth token: otherwise nobody is asked who they are")
	case clientAuths[cfg.TLS.ClientAuth] == tls.NoClientCert:
		return wrongf("--node-identity needs --tls-client-auth request or require, and --tls-client-ca")
	}
	for _, name := range a.nodes() {
		if err := name.Check(); err != nil {
			return wrongf("--node-identity: %v", err)
		}
	}
	if a.keys == nil && !cfg.Fleet.alone() && !a.namesItself(cfg.TLS.certs) {
		return wrongf("--node-identity: other nodes would not know this one: %s has none of the names, or no authority of --tls-client-ca signed it for clients", cfg.TLS.Cert)
	}
	return nil
}

// namesItself reports whether a node with the same settings knows this one by its certificate.
func (a *AuthConfig) namesItself(own *certs.Certs) bool {
	chain := own.Own()
	if len(chain) == 0 || !own.Vouched(chain) {
		return false
	}
	id, ok := auth.IdentityOf(chain[0])
	return ok && a.nodes().Match(id)
}

// newIssuers returns nil when no tokens of issuers count.
func newIssuers(cfg *Config, log *slog.Logger) (*oidc.Issuers, error) {
	if !cfg.Auth.has(authOIDC) {
		return nil, nil
	}
	issuers, err := oidc.New(cfg.Auth.OIDC.config(), log)
	if err != nil {
		return nil, startError{err}
	}
	return issuers, nil
}

// identities adds to the configuration of access what callers are known by besides tokens.
func (cfg *Config) identities(c *access.Config, issuers *oidc.Issuers) {
	if issuers != nil {
		c.Bearers = issuers
	}
	clients := cfg.Auth.has(authMTLS)
	if cfg.TLS.on() && (clients || len(cfg.Auth.Nodes) > 0) {
		c.Certificates, c.Nodes, c.OnlyNodes = cfg.TLS.certs, cfg.Auth.nodes(), !clients
	}
}
