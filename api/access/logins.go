package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/store"
)

const (
	// loginIdle is how long a login lasts without a request, and loginLife how long at the most.
	loginIdle = 30 * time.Minute
	loginLife = 12 * time.Hour
	// touchEvery is how exactly the last request is remembered: each time is a write.
	touchEvery = 5 * time.Minute
)

// login is what is kept of a browser that showed a token, under the hash of its key. The browser
// has the key only, and the registry has neither it nor the token.
type login struct {
	Token   string    `json:"token"` // its id; empty: the root token
	Hash    auth.Hash `json:"hash"`  // of the token
	Created time.Time `json:"created"`
	Used    time.Time `json:"used"`

	version int64 // of its record
}

// ends is when a login ends if it is not used any more.
func (l *login) ends() time.Time {
	idle, last := l.Used.Add(loginIdle), l.Created.Add(loginLife)
	if idle.Before(last) {
		return idle
	}
	return last
}

// loginName is under which the login of a key is kept.
func loginName(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// Logins are those of the registry.
type Logins struct {
	registry *registry
	tokens   *Tokens

	mu    sync.RWMutex
	byKey map[string]*login // by the hash of their key; guarded by mu
}

func newLogins(registry *registry, tokens *Tokens) *Logins {
	return &Logins{registry: registry, tokens: tokens, byKey: make(map[string]*login)}
}

func (ls *Logins) kind() string { return kindLogin }

func (ls *Logins) learn(records []store.Record) {
	all := make(map[string]*login, len(records))
	for i := range records {
		r, l := &records[i], new(login)
		if _, err := ls.registry.read(r, l); err != nil {
			ls.registry.log.Error("record of a login cannot be believed: it does not count", "err", err)
			continue
		}
		l.version = r.Version
		all[r.Name] = l
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.byKey = all
}

// Begin exchanges a token for a key, which stands for it in one browser.
func (ls *Logins) Begin(ctx context.Context, token string) (key auth.Secret, s *Session, err error) {
	s, e := ls.tokens.shown(ctx, token)
	if e = ls.tokens.failures.after(ctx, e); e != nil {
		return auth.Secret{}, nil, e
	}
	_, hash, err := auth.ParseToken(token)
	if err != nil {
		return auth.Secret{}, nil, badCredentials()
	}
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never fails
	text := base64.RawURLEncoding.EncodeToString(raw[:])
	now := time.Now().UTC().Truncate(time.Millisecond)
	ls.forget(ctx, now)
	if crowded(s.Namespace, ls.of(s.Namespace), ls.all()) {
		return auth.Secret{}, nil, tooManyLogins()
	}
	if err := ls.put(ctx, loginName(text), &login{Token: s.ID, Hash: hash, Created: now, Used: now}); err != nil {
		return auth.Secret{}, nil, problem.AsError(err)
	}
	return auth.NewSecret(text), s, nil
}

// put stores a login and makes it count here.
func (ls *Logins) put(ctx context.Context, name string, l *login) error {
	is, err := ls.registry.write(ctx, store.Record{Kind: kindLogin, Name: name, Version: l.version}, l)
	switch {
	case errors.Is(err, store.ErrRegistryFull):
		return tooManyLogins()
	case err != nil:
		return err
	}
	_ = ls.registry.wrote(ctx, is) // the next look sees it, too
	return nil
}

func tooManyLogins() *problem.Error {
	return &problem.Error{Kind: problem.Exhausted, Reason: "TOO_MANY_LOGINS", Message: "there are as many logins as there may be, in the namespace or in all"}
}

// add knows one login more, or one anew.
func (ls *Logins) add(record store.Record) {
	l := new(login)
	if _, err := ls.registry.read(&record, l); err != nil {
		return // the next look says so
	}
	l.version = record.Version
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.byKey[record.Name] = l
}

func (ls *Logins) all() int {
	ls.mu.RLock()
	defer ls.mu.RUnlock()
	return len(ls.byKey)
}

// of is how many logins the tokens of a namespace have.
func (ls *Logins) of(namespace string) (n int) {
	ls.mu.RLock()
	defer ls.mu.RUnlock()
	ls.tokens.mu.RLock()
	defer ls.tokens.mu.RUnlock()
	for _, l := range ls.byKey {
		if s := ls.tokens.byID[l.Token]; s != nil && s.Namespace == namespace {
			n++
		}
	}
	return n
}

// forget deletes some of the logins that have ended.
func (ls *Logins) forget(ctx context.Context, now time.Time) {
	ended := make(map[string]int64, mostForgotten)
	ls.mu.RLock()
	for name, l := range ls.byKey {
		if !now.Before(l.ends()) && len(ended) < mostForgotten {
			ended[name] = l.version
		}
	}
	ls.mu.RUnlock()
	for name, version := range ended {
		_ = ls.registry.DeleteRecord(ctx, kindLogin, name, version) // another node may have been first
	}
}

// Who returns who a key stands for. A login ends with its token.
func (ls *Logins) Who(ctx context.Context, key string) (*Session, *problem.Error) {
	name := loginName(key)
	l, seen := ls.known(name)
	if l == nil {
		if ls.registry.lookFor(ctx) != nil {
			return nil, notNow()
		}
		l, seen = ls.known(name)
	}
	now := time.Now()
	switch {
	case l == nil || !now.Before(l.ends()):
		return nil, badCredentials()
	case now.Sub(seen) > staleAfter:
		return nil, notNow()
	}
	s := ls.tokens.of(l.Token, l.Hash)
	if s == nil || !s.Valid(now) {
		return nil, badCredentials()
	}
	ls.touch(ctx, name, l, now)
	return s, nil
}

func (ls *Logins) known(name string) (*login, time.Time) {
	ls.mu.RLock()
	defer ls.mu.RUnlock()
	return ls.byKey[name], ls.registry.lastSeen()
}

// touch remembers that a login is used. When it cannot be, the login may end early.
func (ls *Logins) touch(ctx context.Context, name string, l *login, now time.Time) {
	if now.Sub(l.Used) < touchEvery {
		return
	}
	next := *l
	next.Used = now.UTC().Truncate(time.Millisecond)
	_ = ls.put(ctx, name, &next)
}

// End ends the login of a key, if there is one.
func (ls *Logins) End(ctx context.Context, key string) error {
	name := loginName(key)
	for range 2 { // it may be touched meanwhile
		l, _ := ls.known(name)
		if l == nil {
			return nil
		}
		err := ls.registry.DeleteRecord(ctx, kindLogin, name, l.version)
		_ = ls.registry.look(ctx) // the next look sees it, too
		if !errors.Is(err, store.ErrVersion) {
			return problem.AsError(err)
		}
	}
	return notNow()
}

type callerKey struct{}

// WithCaller returns a context of calls within the process that a session makes. No header of a
// call can say so.
func WithCaller(ctx context.Context, s *Session) context.Context {
	return context.WithValue(ctx, callerKey{}, s)
}

// Caller is who makes a call within the process; nil when the call has to say it.
func Caller(ctx context.Context) *Session {
	s, _ := ctx.Value(callerKey{}).(*Session)
	return s
}
