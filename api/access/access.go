package access

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/store"
)

// Config of Access.
type Config struct {
	// On says that callers have to say who they are. Otherwise each is local.
	On bool
	// Root is the root token; the empty secret is none.
	Root auth.Secret
	// Node is this node's name, and Keys are those of its fleet, the first to sign with.
	// Without keys nobody is a node by a credential under them, and records are not sealed.
	Node string
	Keys *auth.ClusterKeys
	// Bearers knows tokens of issuers, and Certificates those of connections. Without
	// them nobody is known by such.
	Bearers      Bearers
	Certificates Certificates
	// Nodes are the names by which a certificate is a node's. With OnlyNodes others do not count.
	Nodes     auth.Subjects
	OnlyNodes bool
	// Failures is how often a second one address may show what does not count before nothing
	// is looked up for it. Addresses of this machine may always. 0: no bound.
	Failures int
}

// Bearers tells whose a token is that ddq did not make.
type Bearers interface {
	// Verify returns whose it is. An oidc.ErrAway is not for the caller to mend.
	Verify(ctx context.Context, token string) (*auth.Identity, error)
	// Counts reports whether what signed the token of an identity counts still, and Change
	// is another number when that may have changed.
	Counts(id *auth.Identity) bool
	Change() int64
}

// Certificates tells which ones count.
type Certificates interface {
	// Vouched reports whether a chain ends at an authority for clients, and Change is another
	// number when that may have changed.
	Vouched(chain []*x509.Certificate) bool
	Change() int64
}

// Access knows who may call. It owns one goroutine from Start to Stop.
type Access struct {
	Tokens   *Tokens
	Bindings *Bindings
	Logins   *Logins

	Namespaces *Namespaces

	config   Config
	nodes    *auth.Nodes // nil without keys
	local    *Session
	callers  *callers
	failures *failures
	registry *registry
	log      *slog.Logger
	cancel   context.CancelFunc
	loop     sync.WaitGroup
}

// New knows no tokens until Start.
func New(config Config, kept store.Registry, log *slog.Logger) (*Access, error) {
	failures, registry := newFailures(config.Failures), newRegistry(records{kept, config.Keys}, log)
	tokens, err := newTokens(config.Root, registry, failures)
	if err != nil {
		return nil, err
	}
	callers := newCallers(&config, registry, failures)
	a := &Access{
		Tokens: tokens, Bindings: &Bindings{registry, callers}, Logins: newLogins(registry, tokens),
		Namespaces: newNamespaces(registry), config: config, local: newSession(auth.Local()), callers: callers, failures: failures, registry: registry, log: log,
	}
	registry.learners = []learner{a.Namespaces}
	if config.On { // else nobody is asked for a token
		registry.learners = append(registry.learners, a.Tokens, a.Bindings, a.Logins)
	}
	if config.Keys != nil {
		a.nodes = auth.NewNodes(config.Node, config.Keys)
	}
	return a, nil
}

// On reports whether callers have to say who they are.
func (a *Access) On() bool { return a.config.On }

// Local is whoever calls while they have not.
func (a *Access) Local() *Session { return a.local }

// Start seals with the first key of the fleet what is sealed with its others, reads the tokens and goes on to follow them. It does not fail while the store is away:
// tokens and namespaces are then not known yet. Nobody is asked for a token while callers do not have to say
// who they are, so none is followed then.
func (a *Access) Start(ctx context.Context) {
	if err := a.registry.reseal(ctx); err != nil {
		a.log.Warn("records are not sealed with the first key of the fleet: keep the others", "err", err)
	}
	if err := a.registry.look(ctx); err != nil {
		a.log.Warn("tokens and namespaces cannot be read", "err", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel = cancel
	a.loop.Go(func() { a.follow(ctx) })
}

// Stop waits for the goroutine. It may be called twice, and without Start.
func (a *Access) Stop() {
	if a.cancel != nil {
		a.cancel()
	}
	a.loop.Wait()
}

func (a *Access) follow(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		call, cancel := context.WithTimeout(ctx, 5*lookEvery)
		err := a.registry.look(call)
		cancel()
		a.callers.recheck(time.Now())
		if failed := err != nil && ctx.Err() == nil; failed != failing {
			if failing = failed; failed {
				a.log.Warn("tokens and namespaces cannot be read; those that are known go on for a while", "err", err)
			}
		}
	}
}

// Refusals. All that is wrong with a credential has one answer.
func noCredentials() *problem.Error {
	return &problem.Error{Kind: problem.Unauthenticated, Reason: "NO_CREDENTIALS", Message: "the call has no credentials; this server asks for a token"}
}

func badCredentials() *problem.Error {
	return &problem.Error{Kind: problem.Unauthenticated, Reason: "BAD_CREDENTIALS", Message: "the credentials are not valid"}
}

func notNow() *problem.Error {
	return &problem.Error{Kind: problem.Unavailable, Reason: "STORE_DOWN", Message: "tokens cannot be read", RetryAfter: problem.RetrySoon}
}

// Ended is why a call or a stream ends whose credential does not count any more.
func Ended() *problem.Error { return badCredentials() }

// Who returns who calls a method, from the values of the authorization header. The context says where
// the call comes from.
func (a *Access) Who(ctx context.Context, authorization []string, method string) (*Session, *problem.Error) {
	if !a.config.On {
		return a.local, nil
	}
	s, e := a.who(ctx, authorization, method)
	return s, a.failures.after(ctx, e)
}

func (a *Access) who(ctx context.Context, authorization []string, method string) (*Session, *problem.Error) {
	switch {
	case len(authorization) == 0 || authorization[0] == "":
		return a.callers.connection(ctx)
	case len(authorization) > 1:
		return nil, badCredentials()
	}
	credential := authorization[0]
	if strings.HasPrefix(credential, auth.NodeScheme) {
		return a.node(credential, method)
	}
	const bearer = "bearer "
	if len(credential) <= len(bearer) || !strings.EqualFold(credential[:len(bearer)], bearer) {
		return nil, badCredentials()
	}
	return a.bearer(ctx, credential[len(bearer):])
}

func (a *Access) bearer(ctx context.Context, text string) (*Session, *problem.Error) {
	if a.config.Bearers == nil || auth.LooksLikeToken(text) {
		return a.Tokens.shown(ctx, text)
	}
	return a.callers.issued(ctx, text)
}

func (a *Access) node(credential, method string) (*Session, *problem.Error) {
	if a.nodes == nil {
		return nil, badCredentials()
	}
	name, err := a.nodes.Verify(credential, method, time.Now())
	if errors.Is(err, auth.ErrClockSkew) {
		return nil, &problem.Error{Kind: problem.Unauthenticated, Reason: "CLOCK_SKEW", Message: err.Error()}
	}
	if err != nil {
		return nil, badCredentials()
	}
	return newSession(auth.Fellow(name)), nil
}
