package access

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/store"
)

// NewToken is a token that is to be made.
type NewToken struct {
	Name   string
	Grants auth.Grants
	Life   time.Duration // 0: the default
	Never  bool          // it does not expire
	// CallsPerSecond bounds its calls at each node, BytesPerSecond the payloads in them; 0: as its
	// maker's.
	CallsPerSecond, BytesPerSecond int
}

func badGrant(err error) *problem.Error {
	return &problem.Error{Kind: problem.Invalid, Reason: "BAD_GRANT", Field: "grants", Message: err.Error()}
}

func beyondGrants() *problem.Error {
	return &problem.Error{Kind: problem.Denied, Reason: "BEYOND_GRANTS", Message: "the token would do more than you may, for longer or more often, or send more"}
}

func noToken() *problem.Error {
	return &problem.Error{Kind: problem.NotFound, Reason: "NO_TOKEN", Field: "id", Message: "no such token"}
}

func tokenChanged() *problem.Error {
	return &problem.Error{Kind: problem.Aborted, Reason: "VERSION_MISMATCH", Message: "it was changed meanwhile"}
}

// Tokens are those of the registry, and the root token, which is not in it.
type Tokens struct {
	registry *registry
	failures *failures
	root     *Session // nil without a root token
	rootHash auth.Hash

	mu   sync.RWMutex
	byID map[string]*Session // guarded by mu
}

func newTokens(root auth.Secret, registry *registry, failures *failures) (*Tokens, error) {
	ts := &Tokens{registry: registry, failures: failures, byID: make(map[string]*Session)}
	if root.Empty() {
		return ts, nil
	}
	_, hash, err := auth.ParseToken(root.Reveal())
	if err != nil {
		return nil, err
	}
	ts.root, ts.rootHash = newSession(auth.Root()), hash
	return ts, nil
}

func (ts *Tokens) kind() string { return kindToken }

// learn replaces what is known. Sessions of tokens that are as they were go on; others end.
func (ts *Tokens) learn(records []store.Record) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	next := make(map[string]*Session, len(records))
	for i := range records {
		r := &records[i]
		if known := ts.byID[r.Name]; known != nil && known.version == r.Version {
			next[r.Name] = known
			continue
		}
		t, _, err := ts.open(r)
		if err != nil {
			ts.registry.log.Error("record of a token cannot be believed: it does not count", "token", r.Name, "err", err)
			continue
		}
		s := ts.byID[r.Name].after(t)
		s.version = r.Version
		next[r.Name] = s
	}
	for id, s := range ts.byID {
		if now := next[id]; now == nil || now.gone != s.gone {
			s.end()
		}
	}
	ts.byID = next
}

// add knows one token more, or one anew.
func (ts *Tokens) add(record store.Record) {
	t, _, err := ts.open(&record)
	if err != nil {
		return // the next look says so
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	was := ts.byID[t.ID]
	s := was.after(t)
	s.version = record.Version
	ts.byID[t.ID] = s
	if was != nil && was.gone != s.gone {
		was.end()
	}
}

// open reads a token's record, and returns what is in it.
func (ts *Tokens) open(r *store.Record) (t *auth.Token, is []byte, err error) {
	t = new(auth.Token)
	if is, err = ts.registry.read(r, t); err != nil {
		return nil, nil, err
	}
	if t.ID != r.Name {
		return nil, nil, errors.New("it is that of another token")
	}
	return t, is, nil
}

// shown is whose a token is that somebody shows.
func (ts *Tokens) shown(ctx context.Context, text string) (*Session, *problem.Error) {
	id, hash, err := auth.ParseToken(text)
	if err != nil {
		return nil, badCredentials()
	}
	if ts.root != nil && ts.rootHash.Equal(hash) {
		return ts.root, nil
	}
	s, seen := ts.known(id)
	now := time.Now()
	if s == nil {
		if over := ts.failures.over(ctx, now); over != nil {
			return nil, over
		}
		if ts.registry.lookFor(ctx) != nil {
			return nil, notNow()
		}
		s, seen = ts.known(id)
		now = time.Now()
	}
	switch {
	case s == nil || !s.hash.Equal(hash) || !s.Valid(now):
		return nil, badCredentials()
	case now.Sub(seen) > staleAfter:
		return nil, notNow()
	}
	return s, nil
}

// known is the session of a token, and when it was so; nil when there is none.
func (ts *Tokens) known(id string) (*Session, time.Time) {
	ts.mu.RLock()
	s := ts.byID[id]
	ts.mu.RUnlock()
	return s, ts.registry.lastSeen()
}

// of is whose a token is that was shown before; nil when it does not count any more.
func (ts *Tokens) of(id string, hash auth.Hash) *Session {
	if ts.root != nil && id == "" && ts.rootHash.Equal(hash) {
		return ts.root
	}
	if s, _ := ts.known(id); s != nil && s.hash.Equal(hash) {
		return s
	}
	return nil
}

// Create makes a token for a maker, who must be allowed all that it is.
func (ts *Tokens) Create(ctx context.Context, maker *auth.Principal, n NewToken) (*auth.Token, auth.Secret, error) {
	now := time.Now().UTC().Truncate(time.Millisecond)
	t := &auth.Token{
		Name: n.Name, Namespace: n.Grants.Home(), Grants: n.Grants, Created: now, CreatedBy: maker.Name, Makers: maker.MakersOfNext(),
		CallsPerSecond: cmp.Or(n.CallsPerSecond, maker.CallsPerSecond), BytesPerSecond: cmp.Or(n.BytesPerSecond, maker.BytesPerSecond),
	}
	switch {
	case n.Life < 0 || n.Never && n.Life != 0:
		return nil, auth.Secret{}, badGrant(errors.New("the life of a token is above 0, or it never expires"))
	case n.Life > 0:
		t.Expires = now.Add(n.Life)
	case !n.Never:
		t.Expires = now.Add(auth.DefaultLife)
		if end := maker.Expires; !end.IsZero() && end.Before(t.Expires) {
			t.Expires = end
		}
	}
	return ts.keep(ctx, maker, t, nil, now)
}

// keep checks a token, gives it a secret and stores it. It is one anew of what is in a record; nil: of none.
func (ts *Tokens) keep(ctx context.Context, maker *auth.Principal, t *auth.Token, of []byte, now time.Time) (*auth.Token, auth.Secret, error) {
	if err := t.Check(now); err != nil {
		return nil, auth.Secret{}, badGrant(err)
	}
	if !t.Within(maker) {
		return nil, auth.Secret{}, beyondGrants()
	}
	if err := ts.room(ctx, t.Namespace, now); err != nil {
		return nil, auth.Secret{}, err
	}
	id, secret, hash := auth.NewToken()
	t.ID, t.Hash = id, hash
	if err := ts.put(ctx, t, store.Record{Value: of}); err != nil {
		return nil, auth.Secret{}, err
	}
	return t, secret, nil
}

// put stores a token and makes it count here. was has the version of its record, and what is in it.
func (ts *Tokens) put(ctx context.Context, t *auth.Token, was store.Record) error {
	was.Kind, was.Name = kindToken, t.ID
	is, err := ts.registry.write(ctx, was, t)
	if err := changed(err); err != nil {
		return err
	}
	_ = ts.registry.wrote(ctx, is) // the next look sees it, too
	return nil
}

// room says why a namespace may have no token more. Those of it that have expired make room for others.
func (ts *Tokens) room(ctx context.Context, namespace string, now time.Time) error {
	own, all, ended := ts.count(namespace, now)
	if !crowded(namespace, own, all) {
		return nil
	}
	for id, version := range ended {
		if err := ts.registry.DeleteRecord(ctx, kindToken, id, version); err != nil && !errors.Is(err, store.ErrVersion) {
			return changed(err)
		}
	}
	if err := ts.registry.look(ctx); err != nil {
		return problem.AsError(err)
	}
	if own, all, _ = ts.count(namespace, now); crowded(namespace, own, all) {
		return tooManyTokens()
	}
	return nil
}

// count is how many tokens a namespace has, how many there are, and some of the namespace's that have expired, with the
// versions of their records.
func (ts *Tokens) count(namespace string, now time.Time) (own, all int, ended map[string]int64) {
	ended = make(map[string]int64)
	ts.mu.RLock()
	defer ts.mu.RUnlock()
	for id, s := range ts.byID {
		if s.Namespace != namespace {
			continue
		}
		own++
		if !s.Expires.IsZero() && now.After(s.Expires) && len(ended) < mostForgotten {
			ended[id] = s.version
		}
	}
	return own, len(ts.byID), ended
}

// List returns the tokens that a principal could have made, the oldest first.
func (ts *Tokens) List(ctx context.Context, by *auth.Principal) ([]*auth.Token, error) {
	records, _, err := ts.registry.Records(ctx, kindToken)
	if err != nil {
		return nil, problem.AsError(err)
	}
	var all []*auth.Token
	for i := range records {
		if t, _, err := ts.open(&records[i]); err == nil && by.Grants.Cover(t.Grants) {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(x, y *auth.Token) int { return x.Created.Compare(y.Created) })
	return all, nil
}

// find returns a token that a principal may change: one that it could have made, or its own.
// Others are not there. The record has what is in it, opened.
func (ts *Tokens) find(ctx context.Context, by *auth.Principal, id string) (*auth.Token, store.Record, error) {
	records, _, err := ts.registry.Records(ctx, kindToken)
	if err != nil {
		return nil, store.Record{}, problem.AsError(err)
	}
	i := slices.IndexFunc(records, func(r store.Record) bool { return r.Name == id })
	if i < 0 {
		return nil, store.Record{}, noToken()
	}
	t, is, err := ts.open(&records[i])
	if err != nil || by.ID != t.ID && !by.Grants.Cover(t.Grants) {
		return nil, store.Record{}, noToken()
	}
	records[i].Value = is
	return t, records[i], nil
}

// Rotate makes a token that takes the place of another one, which ends after the overlap.
func (ts *Tokens) Rotate(ctx context.Context, by *auth.Principal, id string, overlap time.Duration) (*auth.Token, auth.Secret, error) {
	old, record, err := ts.find(ctx, by, id)
	if err != nil {
		return nil, auth.Secret{}, err
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	if overlap < 0 {
		return nil, auth.Secret{}, problem.BadField("overlap", "OUT_OF_RANGE_FIELD", "overlap must not be negative")
	}
	if old.Successor != "" {
		return nil, auth.Secret{}, &problem.Error{Kind: problem.Precondition, Reason: "ROTATED", Field: "id", Message: "the token was rotated; its successor is " + old.Successor}
	}
	next := *old // but for its secret and its span
	next.Created, next.CreatedBy, next.Makers = now, by.Name, by.MakersOfNext()
	if !old.Expires.IsZero() {
		next.Expires = now.Add(old.Expires.Sub(old.Created))
		if end := by.Expires; !end.IsZero() && end.Before(next.Expires) {
			next.Expires = end
		}
	}
	made, secret, err := ts.keep(ctx, by, &next, record.Value, now)
	if err != nil {
		return nil, auth.Secret{}, err
	}
	if end := now.Add(overlap); old.Expires.IsZero() || end.Before(old.Expires) {
		old.Expires = end
	}
	old.Successor = made.ID
	return made, secret, ts.put(ctx, old, record)
}

// Revoke ends a token.
func (ts *Tokens) Revoke(ctx context.Context, by *auth.Principal, id string) error {
	_, record, err := ts.find(ctx, by, id)
	if err != nil {
		return err
	}
	return ts.registry.changed(ctx, ts.registry.DeleteRecord(ctx, kindToken, id, record.Version))
}

// RevokeWithMade ends a token, which may be gone, and all that come from it, as far as by may end them.
func (ts *Tokens) RevokeWithMade(ctx context.Context, by *auth.Principal, id string) error {
	from := map[string]bool{id: true} // and those that were ended
	comes := func(maker string) bool { return from[maker] }
	for ended := false; ; ended = true {
		records, _, err := ts.registry.Records(ctx, kindToken)
		if err != nil {
			return problem.AsError(err)
		}
		found := 0
		for i := range records {
			t, _, err := ts.open(&records[i])
			if err != nil || t.ID != id && !slices.ContainsFunc(t.Makers, comes) || by.ID != t.ID && !by.Grants.Cover(t.Grants) {
				continue
			}
			found++
			from[t.ID] = true
			err = ts.registry.DeleteRecord(ctx, kindToken, t.ID, records[i].Version)
			if err != nil && !errors.Is(err, store.ErrVersion) { // the next round knows what it is now
				return ts.registry.changed(ctx, err)
			}
		}
		switch {
		case found == 0 && !ended:
			return noToken()
		case found == 0: // also of what they made meanwhile
			return ts.registry.changed(ctx, nil)
		}
	}
}
