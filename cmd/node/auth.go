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
	"github.com/ddq-io/ddq/cluster"
	"github.com/ddq-io/ddq/store"
)

// AuthConfig is how callers say who they are.
type AuthConfig struct {
	Mode      string // empty: token where other machines reach a port, else off
	RootToken string
	Plaintext bool

	keys []auth.ClusterKey // of the fleet; set by check
}

// Ways to authenticate, by --auth.
const (
	authOff   = "off"
	authToken = "token"
)

func (a *AuthConfig) flags(fs *pflag.FlagSet) {
	fs.StringVar(&a.Mode, "auth", "", "how callers say who they are: token, or off (default token when other machines can reach a port, else off)")
	fs.StringVar(&a.RootToken, "root-token", "", "where the token is that may do everything: file:PATH, which is made when it is not there, or env:NAME (default a file beside the embedded store)")
	fs.BoolVar(&a.Plaintext, "plaintext", false, "accept ports without TLS that other machines can reach, where a proxy or a mesh does TLS; callers still have to say who they are")
}

func (a *AuthConfig) check(cfg *Config) error {
	if a.Mode == "" {
		a.Mode = authOff
		if !cfg.Insecure && !cfg.local() {
			a.Mode = authToken
		}
	}
	switch {
	case a.Mode != authOff && a.Mode != authToken:
		return wrongf("--auth is token or off, not %q", a.Mode)
	case a.RootToken != "" && !strings.HasPrefix(a.RootToken, "file:") && !strings.HasPrefix(a.RootToken, "env:"):
		return wrongf("--root-token is file:PATH or env:NAME: a token on the command line is seen by every user of the machine")
	}
	keys, err := cluster.DecodeKeys(cfg.Fleet.GossipKeys)
	if err != nil {
		return wrongf("--gossip-key: %v", err)
	}
	for _, k := range keys {
		a.keys = append(a.keys, auth.NewClusterKey(k))
	}
	if a.on() && !cfg.Fleet.alone() && len(a.keys) == 0 {
		return wrongf("a fleet whose callers say who they are needs --gossip-key: by that its nodes know each other")
	}
	return nil
}

func (a *AuthConfig) on() bool { return a.Mode == authToken }

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
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return makeRoot(name, log)
	case err != nil:
		return auth.Secret{}, fmt.Errorf("--root-token: %w", err)
	case info.Mode().Perm()&0o077 != 0:
		return auth.Secret{}, fmt.Errorf("--root-token: other users can read %s (mode %v): chmod 600 it", name, info.Mode().Perm())
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return auth.Secret{}, fmt.Errorf("--root-token: %w", err)
	}
	return checkedToken(strings.TrimSpace(string(text)), "--root-token: "+name)
}

func makeRoot(name string, log *slog.Logger) (auth.Secret, error) {
	_, secret, _ := auth.NewToken()
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the operator chose the name
	if err != nil {
		return auth.Secret{}, fmt.Errorf("--root-token: %w", err)
	}
	if _, err := fmt.Fprintln(f, secret.Reveal()); err != nil {
		return auth.Secret{}, errors.Join(err, f.Close(), os.Remove(name))
	}
	log.Info("root token was made; it may do everything: make others with it, and put it away", "file", name)
	return secret, f.Close()
}

func checkedToken(text, where string) (auth.Secret, error) {
	if _, _, err := auth.ParseToken(text); err != nil {
		return auth.Secret{}, fmt.Errorf("%s: there is no token in it", where)
	}
	return auth.NewSecret(text), nil
}

// newAccess knows who may call; it is nil with a store that has no registry.
func newAccess(cfg *Config, st store.Store, log *slog.Logger) (*access.Access, error) {
	registry, ok := st.(store.Registry)
	if !ok {
		return nil, startError{errors.New("the store keeps no tokens")}
	}
	root, err := cfg.Auth.root(cfg, log)
	if err != nil {
		return nil, startError{err}
	}
	a, err := access.New(access.Config{On: cfg.Auth.on(), Root: root, Node: cfg.Actors.Node, Keys: cfg.Auth.keys}, registry, log)
	if err != nil {
		return nil, startError{err}
	}
	return a, nil
}

// credential is what this node shows to others; nil without a key of the fleet.
func (cfg *Config) credential() func(node, method string) string {
	if len(cfg.Auth.keys) == 0 {
		return nil
	}
	key, self := cfg.Auth.keys[0], cfg.Actors.Node
	return func(node, method string) string { return key.Sign(self, node, method, time.Now()) }
}

// Exceptions are what is less safe than it could be, because somebody said so.
func (cfg *Config) Exceptions() []string {
	var all []string
	if cfg.Insecure {
		all = append(all, "insecure is set: whoever reaches the listeners may do anything")
	}
	if cfg.Auth.Plaintext && !cfg.TLS.on() {
		all = append(all, "plaintext is set: tokens and payloads are not encrypted between here and what does TLS")
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
	if len(missing) == 0 {
		return nil
	}
	return wrongf("--%s %s: other machines could reach it; use 127.0.0.1, or add %s; --insecure accepts that whoever reaches it may do anything", flag, addr, strings.Join(missing, " and "))
}

// follow starts access, and logs what is less safe than it could be.
func follow(ctx context.Context, cfg *Config, a *access.Access, log *slog.Logger) {
	a.Start(ctx)
	for _, what := range slices.Sorted(slices.Values(cfg.Exceptions())) {
		log.Warn("less safe than it could be", "why", what)
	}
}
