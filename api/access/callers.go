package access

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"maps"
	"reflect"
	"sync"
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/api/auth/oidc"
)

// maxShown bounds the callers that are remembered. Sessions of those beyond it end with every
// change of the bindings, and each of their calls is checked in full.
const maxShown = 10_000

// credential names what a caller showed: the hash of a token or a certificate.
type credential [sha256.Size]byte

// callers are those that bindings give their grants, for as long as what they showed counts.
type callers struct {
	registry     *registry
	failures     *failures
	bearers      Bearers
	certificates Certificates
	nodes        auth.Subjects // whose certificates are those of nodes
	onlyNodes    bool          // other certificates do not count

	mu       sync.RWMutex
	bindings auth.Bindings          // guarded by mu
	by       map[credential]*caller // guarded by mu
	now      context.Context        // ends with the next change of the bindings; guarded by mu
	end      context.CancelFunc     // guarded by mu

	ofBearers, ofCertificates int64     // changes that were seen; guarded by mu
	swept                     time.Time // guarded by mu
}

// caller is one of callers.
type caller struct {
	*Session
	identity *auth.Identity
	chain    []*x509.Certificate // of a certificate
}

func newCallers(config *Config, registry *registry, failures *failures) *callers {
	s := &callers{
		registry: registry, failures: failures, bearers: config.Bearers, by: make(map[credential]*caller),
		certificates: config.Certificates, nodes: config.Nodes, onlyNodes: config.OnlyNodes,
	}
	s.now, s.end = context.WithCancel(context.Background())
	return s
}

// bind replaces the bindings. Callers whose grants are others now start anew.
func (cs *callers) bind(bindings auth.Bindings) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if reflect.DeepEqual(bindings, cs.bindings) {
		return
	}
	cs.bindings = bindings
	cs.end()
	cs.now, cs.end = context.WithCancel(context.Background())
	cs.drop(func(c *caller) bool { return !reflect.DeepEqual(cs.principal(c.identity).Grants, c.Grants) })
}

// principal is who has an identity: a node, or whoever has the grants of its bindings. mu is held.
func (cs *callers) principal(id *auth.Identity) *auth.Principal {
	if cs.nodes.Match(id) {
		return auth.CertifiedNode(id)
	}
	return cs.bindings.Principal(id)
}

// drop ends the sessions of those callers. mu is held.
func (cs *callers) drop(gone func(*caller) bool) {
	maps.DeleteFunc(cs.by, func(_ credential, c *caller) bool {
		over := gone(c)
		if over {
			c.end()
		}
		return over
	})
}

// add remembers a caller, where there is room. mu is held.
func (cs *callers) add(key credential, c *caller) *Session {
	p := cs.principal(c.identity)
	if len(cs.by) >= maxShown {
		return &Session{Principal: p, gone: cs.now, end: func() {}}
	}
	c.Session = newSession(p)
	cs.by[key] = c
	return c.Session
}

// known is the session of a caller, and when it was so; nil when it is not remembered.
func (cs *callers) known(key credential) (*Session, time.Time) {
	cs.mu.RLock()
	c := cs.by[key]
	cs.mu.RUnlock()
	if c == nil {
		return nil, cs.registry.lastSeen()
	}
	return c.Session, cs.registry.lastSeen()
}

// connection is who calls without a header: whoever its certificate names.
func (cs *callers) connection(ctx context.Context) (*Session, *problem.Error) {
	from, _ := auth.OriginOf(ctx)
	if cs.certificates == nil || len(from.Chain) == 0 {
		return nil, noCredentials()
	}
	key := credential(sha256.Sum256(from.Chain[0].Raw))
	return cs.recognized(ctx, key, func() (*caller, *problem.Error) {
		id, ok := auth.IdentityOf(from.Chain[0])
		switch {
		case cs.onlyNodes && (!ok || !cs.nodes.Match(id)):
			return nil, noCredentials()
		case !ok || !cs.certificates.Vouched(from.Chain):
			return nil, badCredentials()
		}
		return &caller{identity: id, chain: from.Chain}, nil
	})
}

// issued is who calls with a token of an issuer.
func (cs *callers) issued(ctx context.Context, text string) (*Session, *problem.Error) {
	key := credential(sha256.Sum256([]byte(text)))
	return cs.recognized(ctx, key, func() (*caller, *problem.Error) {
		id, err := cs.bearers.Verify(ctx, text)
		switch {
		case errors.Is(err, oidc.ErrAway):
			return nil, issuerDown()
		case err != nil:
			return nil, badCredentials()
		}
		return &caller{identity: id}, nil
	})
}

func issuerDown() *problem.Error {
	return &problem.Error{Kind: problem.Unavailable, Reason: "ISSUER_DOWN", Message: "the keys of the token's issuer cannot be read", RetryAfter: problem.RetrySoon}
}

// recognized is the session of a caller, who is checked when it is not known.
func (cs *callers) recognized(ctx context.Context, key credential, check func() (*caller, *problem.Error)) (*Session, *problem.Error) {
	s, seen := cs.known(key)
	now := time.Now()
	if s == nil || !s.Valid(now) {
		if over := cs.failures.over(ctx, now); over != nil {
			return nil, over
		}
		c, e := check()
		if e != nil {
			return nil, e
		}
		if seen.IsZero() && cs.registry.lookFor(ctx) != nil { // no binding was read yet
			return nil, notNow()
		}
		if s, seen = cs.remember(key, c); s == nil {
			return nil, badCredentials()
		}
		now = time.Now()
	}
	switch {
	case !s.Valid(now):
		return nil, badCredentials()
	case now.Sub(seen) > staleAfter:
		return nil, notNow()
	}
	return s, nil
}

// remember adds a caller that was checked, unless another call has done so. It returns nil when what
// was checked does not count any more.
func (cs *callers) remember(key credential, c *caller) (*Session, time.Time) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if known := cs.by[key]; known != nil && known.Valid(time.Now()) {
		return known.Session, cs.registry.lastSeen()
	}
	if !cs.counts(c) {
		return nil, cs.registry.lastSeen()
	}
	return cs.add(key, c), cs.registry.lastSeen()
}

// counts reports whether those who vouch for a caller do so still.
func (cs *callers) counts(c *caller) bool {
	if c.identity.Kind == auth.KindIssuer {
		return cs.bearers.Counts(c.identity)
	}
	return cs.certificates.Vouched(c.chain)
}

// sweepEvery is how often those are forgotten whose credential expired.
const sweepEvery = 10 * time.Second

// recheck ends the sessions of what does not count any more: a token whose key was withdrawn, a
// certificate whose authority was.
func (cs *callers) recheck(now time.Time) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if b := cs.bearers; b != nil {
		if change := b.Change(); change != cs.ofBearers {
			cs.ofBearers = change
			cs.drop(func(c *caller) bool { return c.identity.Kind == auth.KindIssuer && !cs.counts(c) })
		}
	}
	if k := cs.certificates; k != nil {
		if change := k.Change(); change != cs.ofCertificates {
			cs.ofCertificates = change
			cs.drop(func(c *caller) bool { return c.identity.Kind == auth.KindCertificate && !cs.counts(c) })
		}
	}
	if now.Sub(cs.swept) >= sweepEvery {
		cs.swept = now
		cs.drop(func(c *caller) bool { return !c.Valid(now) })
	}
}
