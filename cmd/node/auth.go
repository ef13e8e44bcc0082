package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/ddq-io/ddq/api/access"
	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/api/auth/oidc"
	"github.com/ddq-io/ddq/store"
)

// AuthConfig is how callers say who they are.
type AuthConfig struct {
	Mode      string // empty: token where other machines reach a port, else off
	RootToken string
	Plaintext bool
	Policy    string // enforce, or observe: nobody is refused
	OIDC      OIDCConfig
	Nodes     []string // names in certificates of nodes
	Failures  int      // a second, of one address; 0: no bound

	keys *auth.ClusterKeys // of the fleet; set by check; nil: none
}

// Ways to authenticate, by --auth.
const (
	authOff   = "off"
	authToken = "token"
	authOIDC  = "oidc" // beside token
	authMTLS  = "mtls" // beside token
)

// What becomes of a call that is not allowed, by --auth-mode.
const (
	authEnforce = "enforce"
	authObserve = "observe"
)

func (a *AuthConfig) flags(fs *pflag.FlagSet) {
	fs.StringVar(&a.Mode, "auth", "", "how callers say who they are: off, or token, and beside it oidc for tokens of issuers and mtls for client certificates, such as token,mtls (default token when other machines can reach a port, else off)")
	fs.StringVar(&a.RootToken, "root-token", "", "where the token is that may do everything: file:PATH, which is made when it is not there, or env:NAME (default a file beside the embedded store)")
	fs.BoolVar(&a.Plaintext, "plaintext", false, "accept ports without TLS that other machines can reach, where a proxy or a mesh does TLS; callers still have to say who they are")
	fs.StringVar(&a.Policy, "auth-mode", authEnforce, "enforce, or observe: calls that would be refused are logged and counted, and let through")
	fs.IntVar(&a.Failures, "max-failed-logins", 10, "calls a second whose credentials do not count before nothing is looked up for their address, beside this machine's own; 0 for no bound, as behind a proxy that hides addresses")
	fs.StringSliceVar(&a.Nodes, "node-identity", nil, "names by which a certificate is that of a node, beside credentials under --gossip-key: URIs such as spiffe://prod/ddq, beginnings of URIs up to a slash, or DNS names")
	a.OIDC.flags(fs)
}

func (a *AuthConfig) check(cfg *Config) error {
	if a.Mode == "" {
		a.Mode = authOff
		if !cfg.Insecure && !cfg.local() {
			a.Mode = authToken
		}
	}
	if err := a.checkWays(cfg); err != nil {
		return err
	}
	switch {
	case a.Policy != "" && a.Policy != authEnforce && a.Policy != authObserve:
		return wrongf("--auth-mode is enforce or observe, not %q", a.Policy)
	case a.observes() && !a.on():
		return wrongf("--auth-mode observe needs --auth token")
	}
	if a.Failures < 0 || a.Failures > 1_000_000 {
		return wrongf("--max-failed-logins is 0 to 1000000, not %d", a.Failures)
	}
	if a.RootToken != "" && !namesSecret(a.RootToken) {
		return wrongf("--root-token is file:PATH or env:NAME: a token on the command line is seen by every user of the machine")
	}
	keys, err := clusterKeys(cfg.Fleet.keys)
	if err != nil {
		return wrongf("--gossip-key: %v", err)
	}
	a.keys = auth.NewClusterKeys(keys...)
	if a.on() && !cfg.Fleet.alone() && a.keys == nil && len(a.Nodes) == 0 {
		return wrongf("a fleet whose callers say who they are needs --gossip-key or --node-identity: by that its nodes know each other")
	}
	return a.checkNodes(cfg)
}

func (a *AuthConfig) on() bool { return a.has(authToken) }

// observes reports whether callers are asked who they are, and nobody is refused.
func (a *AuthConfig) observes() bool { return a.Policy == authObserve }

// local reports whether only this machine reaches the ports.
func (cfg *Config) local() bool {
	return checkLoopback(cfg.GRPCAddr) && (cfg.HTTPAddr == Off || checkLoopback(cfg.HTTPAddr))
}

// root reads the root token; the empty secret is none. The file is made when it is not there.
func (a *AuthConfig) root(cfg *Config, log *slog.Logger) (auth.Secret, error) {
	if !a.on() {
		return auth.Secret{}, nil
	}
	where := a.RootToken
	if where == "" && (cfg.Store == Embedded) {
		where = "file:" + filepath.Clean(cfg.Data) + ".root-token"
	}
	if name, ok := strings.CutPrefix(where, "env:"); ok {
		return checkedToken(os.Getenv(name), "--root-token: variable "+name)
	}
	name, ok := strings.CutPrefix(where, "file:")
	if !ok {
		log.Warn("there is no root token: only tokens that were made before count; --root-token file:PATH makes one")
		return auth.Secret{}, nil
	}
	token, err := readRoot(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	_, secret, _ := auth.NewToken()
	switch err := secret.WriteNew(name); {
	case errors.Is(err, fs.ErrExist): // another node of the fleet was first
		return readRoot(name)
	case err != nil:
		return auth.Secret{}, fmt.Errorf("--root-token: %w", err)
	}
	log.Info("root token was made; it may do everything: make others with it, and put it away", "file", name)
	return secret, nil
}

func readRoot(name string) (auth.Secret, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return auth.Secret{}, fmt.Errorf("--root-token: %w", err)
	case info.Mode().Perm()&0o077 != 0:
		return auth.Secret{}, fmt.Errorf("--root-token: other users can read %s (mode %v): chmod 600 it", name, info.Mode().Perm())
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return auth.Secret{}, fmt.Errorf("--root-token: %w", err)
	}
	return checkedToken(string(text), "--root-token: "+name)
}

// namesSecret reports whether a setting says where a secret is, rather than being one.
func namesSecret(where string) bool {
	return strings.HasPrefix(where, "file:") || strings.HasPrefix(where, "env:")
}

func checkedToken(text, where string) (auth.Secret, error) {
	text = strings.TrimSpace(text)
	if _, _, err := auth.ParseToken(text); err != nil {
		return auth.Secret{}, fmt.Errorf("%s: there is no token in it", where)
	}
	return auth.NewSecret(text), nil
}

// newAccess knows who may call; it is nil with a store that has no registry.
func newAccess(cfg *Config, st store.Store, issuers *oidc.Issuers, log *slog.Logger) (*access.Access, error) {
	registry, ok := st.(store.Registry)
	if !ok {
		return nil, startError{errors.New("the store keeps no tokens")}
	}
	root, err := cfg.Auth.root(cfg, log)
	if err != nil {
		return nil, startError{err}
	}
	config := access.Config{On: cfg.Auth.on(), Root: root, Node: cfg.Actors.Node, Keys: cfg.Auth.keys, Failures: cfg.Auth.Failures}
	cfg.identities(&config, issuers)
	a, err := access.New(config, registry, log)
	if err != nil {
		return nil, startError{err}
	}
	return a, nil
}

// credential is what this node shows to others; nil without a key of the fleet.
func (cfg *Config) credential() func(node, method string) string {
	keys, self := cfg.Auth.keys, cfg.Actors.Node
	if keys == nil {
		return nil
	}
	return func(node, method string) string { return keys.First().Sign(self, node, method, time.Now()) }
}

// Exceptions are what is less safe than it could be, because somebody said so.
func (cfg *Config) Exceptions() []string {
	var all []string
	if cfg.Insecure {
		all = append(all, "insecure is set: whoever reaches the listeners may do anything")
	}
	if cfg.Auth.observes() {
		all = append(all, "auth-mode observe is set: calls that are not allowed are logged, and done")
	}
	if cfg.Auth.Plaintext && !cfg.TLS.on() {
		all = append(all, "plaintext is set: tokens and payloads are not encrypted between here and what does TLS")
	}
	return all
}

// expiresSoon is from when on a certificate is warned of. Who renews one does so earlier.
const expiresSoon = 14 * 24 * time.Hour

// Warnings are the exceptions, and what will be in the way soon.
func (cfg *Config) Warnings() []string {
	all := cfg.Exceptions()
	if !cfg.TLS.on() {
		return all
	}
	if end := cfg.TLS.certs.Expires(); time.Until(end) < expiresSoon {
		all = append(all, fmt.Sprintf("the certificate %s expires at %s", cfg.TLS.Cert, end.UTC().Format(time.RFC3339)))
	}
	return all
}

// checkPort refuses a port that other machines can reach, unless it has TLS and callers have to
// say who they are.
func (cfg *Config) checkPort(flag, addr string) error {
	if err := checkAddr(flag, addr); err != nil || checkLoopback(addr) || cfg.Insecure {
		return err
	}
	var missing []string
	if !cfg.TLS.on() && !cfg.Auth.Plaintext {
		missing = append(missing, "--tls-cert FILE --tls-key FILE (ddq certs makes them)")
	}
	if !cfg.Auth.on() {
		missing = append(missing, "--auth token")
	}
	if cfg.Auth.observes() {
		missing = append(missing, "--auth-mode enforce")
	}
	if len(missing) == 0 {
		return nil
	}
	return wrongf("--%s %s: other machines could reach it; use 127.0.0.1, or add %s; --insecure accepts that whoever reaches it may do anything", flag, addr, strings.Join(missing, " and "))
}

// follow starts access, and logs what is less safe than it could be.
func follow(ctx context.Context, cfg *Config, p *parts, log *slog.Logger) {
	if p.Issuers != nil {
		p.Issuers.Start()
	}
	p.Access.Start(ctx)
	for _, what := range slices.Sorted(slices.Values(cfg.Warnings())) {
		log.Warn("less safe than it could be", "why", what)
	}
}

// unfollow ends what follow started.
func unfollow(p *parts) {
	p.Access.Stop()
	if p.Issuers != nil {
		p.Issuers.Stop()
	}
}
