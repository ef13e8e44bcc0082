package access

import (
	"context"
	"encoding/json"
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
	// Without keys nobody is a node, and records are not sealed.
	Node string
	Keys []auth.ClusterKey
}

const (
	kindToken = "token"

	lookEvery = time.Second
	// lookAgain is the least time between looks for tokens that are not known.
	lookAgain = 100 * time.Millisecond
	// staleAfter is how long what is known counts while the store is away.
	staleAfter = 10 * time.Minute
)

// Access knows who may call. It owns one goroutine from Start to Stop.
type Access struct {
	config   Config
	registry store.Registry
	nodes    *auth.Nodes // nil without keys
	root     *Session    // nil without a root token
	rootHash auth.Hash
	local    *Session
	log      *slog.Logger
	cancel   context.CancelFunc
	loop     sync.WaitGroup

	reading sync.Mutex // one look at a time

	mu     sync.RWMutex
	byID   map[string]*Session // tokens; guarded by mu
	change int64               // of the registry, as byID shows it; guarded by mu
	seen   time.Time           // when that was so; guarded by mu
}

// Session is a principal while its credential lasts.
type Session struct {
	*auth.Principal
	hash    auth.Hash
	version int64 // of its record

	gone context.Context // done when the credential was revoked
	end  context.CancelFunc
}

func newSession(p *auth.Principal) *Session {
	s := &Session{Principal: p}
	s.gone, s.end = context.WithCancel(context.Background())
	return s
}

// Gone is done when the credential was revoked or changed. That it expires is seen from its
// principal.
func (s *Session) Gone() context.Context { return s.gone }

// Valid reports whether the credential still counts at now.
func (s *Session) Valid(now time.Time) bool {
	return s.gone.Err() == nil && (s.Expires.IsZero() || now.Before(s.Expires))
}

// New knows no tokens until Start.
func New(config Config, registry store.Registry, log *slog.Logger) (*Access, error) {
	a := &Access{config: config, registry: registry, log: log, byID: make(map[string]*Session), local: newSession(auth.Local())}
	if len(config.Keys) > 0 {
		a.nodes = auth.NewNodes(config.Node, config.Keys)
	}
	if !config.Root.Empty() {
		_, hash, err := auth.ParseToken(config.Root.Reveal())
		if err != nil {
			return nil, err
		}
		a.root, a.rootHash = newSession(auth.Root()), hash
	}
	return a, nil
}

// On reports whether callers have to say who they are.
func (a *Access) On() bool { return a.config.On }

// Local is whoever calls while they have not.
func (a *Access) Local() *Session { return a.local }

// Start reads the tokens and goes on to follow them. It does not fail while the store is away:
// tokens are then not known yet.
func (a *Access) Start(ctx context.Context) {
	if err := a.look(ctx); err != nil {
		a.log.Warn("tokens cannot be read", "err", err)
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
		err := a.look(call)
		cancel()
		if failed := err != nil && ctx.Err() == nil; failed != failing {
			if failing = failed; failed {
				a.log.Warn("tokens cannot be read; those that are known go on for a while", "err", err)
			}
		}
	}
}

// look reads the tokens if the registry has changed.
func (a *Access) look(ctx context.Context) error {
	a.reading.Lock()
	defer a.reading.Unlock()
	return a.lookNow(ctx)
}

// lookNow is look for who holds reading.
func (a *Access) lookNow(ctx context.Context) error {
	asked := time.Now()
	change, err := a.registry.RegistryChange(ctx)
	if err != nil {
		return err
	}
	a.mu.Lock()
	same := change == a.change && !a.seen.IsZero()
	if same {
		a.seen = asked
	}
	a.mu.Unlock()
	if same {
		return nil
	}
	records, change, err := a.registry.Records(ctx, kindToken)
	if err != nil {
		return err
	}
	a.learn(records, change, asked)
	return nil
}

// learn replaces what is known. Sessions of records that are as they were go on; others end.
func (a *Access) learn(records []store.Record, change int64, asked time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	next := make(map[string]*Session, len(records))
	for i := range records {
		r := &records[i]
		if known := a.byID[r.Name]; known != nil && known.version == r.Version {
			next[r.Name] = known
			continue
		}
		t, err := a.open(r)
		if err != nil {
			a.log.Error("record of a token cannot be believed: it does not count", "token", r.Name, "err", err)
			continue
		}
		s := newSession(t.Principal())
		s.hash, s.version = t.Hash, r.Version
		next[r.Name] = s
	}
	for id, s := range a.byID {
		if next[id] != s {
			s.end()
		}
	}
	a.byID, a.change, a.seen = next, change, asked
}

var errSeal = errors.New("it is not sealed with a key of this fleet")

// open reads a token's record.
func (a *Access) open(r *store.Record) (*auth.Token, error) {
	value, ok := r.Value, len(a.config.Keys) == 0
	for _, k := range a.config.Keys {
		if value, ok = k.Open(kindToken, r.Name, r.Value); ok {
			break
		}
	}
	if !ok {
		return nil, errSeal
	}
	t := new(auth.Token)
	if err := json.Unmarshal(value, t); err != nil {
		return nil, err
	}
	if t.ID != r.Name {
		return nil, errors.New("it is that of another token")
	}
	return t, nil
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

// Who returns who calls a method, from the values of the authorization header.
func (a *Access) Who(ctx context.Context, authorization []string, method string) (*Session, *problem.Error) {
	switch {
	case !a.config.On:
		return a.local, nil
	case len(authorization) == 0 || authorization[0] == "":
		return nil, noCredentials()
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
	return a.token(ctx, credential[len(bearer):])
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

func (a *Access) token(ctx context.Context, text string) (*Session, *problem.Error) {
	id, hash, err := auth.ParseToken(text)
	if err != nil {
		return nil, badCredentials()
	}
	if a.root != nil && a.rootHash.Equal(hash) {
		return a.root, nil
	}
	s, seen := a.known(id)
	now := time.Now()
	if s == nil && now.Sub(seen) > lookAgain {
		if a.lookFor(ctx) != nil {
			return nil, notNow()
		}
		s, seen = a.known(id)
	}
	switch {
	case s == nil || !s.hash.Equal(hash) || !s.Valid(now):
		return nil, badCredentials()
	case now.Sub(seen) > staleAfter:
		return nil, notNow()
	}
	return s, nil
}

func (a *Access) known(id string) (*Session, time.Time) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.byID[id], a.seen
}

// lookFor looks for a token that is not known, unless another call just has.
func (a *Access) lookFor(ctx context.Context) error {
	asked := time.Now()
	a.reading.Lock()
	defer a.reading.Unlock()
	if _, seen := a.known(""); !seen.Before(asked) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookEvery)
	defer cancel()
	return a.lookNow(ctx)
}
