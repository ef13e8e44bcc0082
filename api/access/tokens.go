package access

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
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
}

func badGrant(err error) *problem.Error {
	return &problem.Error{Kind: problem.Invalid, Reason: "BAD_GRANT", Field: "grants", Message: err.Error()}
}

func beyondGrants() *problem.Error {
	return &problem.Error{Kind: problem.Denied, Reason: "BEYOND_GRANTS", Message: "the token would do more than you may, or for longer"}
}

func noToken() *problem.Error {
	return &problem.Error{Kind: problem.NotFound, Reason: "NO_TOKEN", Field: "id", Message: "no such token"}
}

func tokenChanged() *problem.Error {
	return &problem.Error{Kind: problem.Aborted, Reason: "VERSION_MISMATCH", Field: "id", Message: "the token was changed meanwhile"}
}

// Create makes a token for a maker, who must be allowed all that it is.
func (a *Access) Create(ctx context.Context, maker *auth.Principal, n NewToken) (*auth.Token, auth.Secret, error) {
	now := time.Now().UTC().Truncate(time.Millisecond)
	t := &auth.Token{Name: n.Name, Namespace: maker.Namespace, Grants: n.Grants, Created: now, CreatedBy: maker.Name}
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
	return a.keep(ctx, maker, t, now)
}

// keep checks a token, gives it a secret and stores it.
func (a *Access) keep(ctx context.Context, maker *auth.Principal, t *auth.Token, now time.Time) (*auth.Token, auth.Secret, error) {
	if err := t.Check(now); err != nil {
		return nil, auth.Secret{}, badGrant(err)
	}
	if !t.Within(maker) {
		return nil, auth.Secret{}, beyondGrants()
	}
	id, secret, hash := auth.NewToken()
	t.ID, t.Hash = id, hash
	if err := a.put(ctx, t, 0); err != nil {
		return nil, auth.Secret{}, err
	}
	return t, secret, nil
}

// put stores a token and makes it count here.
func (a *Access) put(ctx context.Context, t *auth.Token, version int64) error {
	value, err := json.Marshal(t)
	if err != nil {
		return err
	}
	if len(a.config.Keys) > 0 {
		value = a.config.Keys[0].Seal(kindToken, t.ID, value)
	}
	_, err = a.registry.PutRecord(ctx, store.Record{Kind: kindToken, Name: t.ID, Version: version, Value: value})
	return a.changed(ctx, err)
}

// changed is the end of every change.
func (a *Access) changed(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, store.ErrVersion):
		return tokenChanged()
	case errors.Is(err, store.ErrRegistryFull):
		return &problem.Error{Kind: problem.Exhausted, Reason: "TOO_MANY_TOKENS", Message: "there are as many tokens as there may be"}
	case errors.Is(err, store.ErrBadRecord):
		return badGrant(err)
	case err != nil:
		return problem.AsError(err)
	}
	_ = a.look(ctx) // the next look sees it, too
	return nil
}

// List returns the tokens that a principal could have made, the oldest first.
func (a *Access) List(ctx context.Context, by *auth.Principal) ([]*auth.Token, error) {
	records, _, err := a.registry.Records(ctx, kindToken)
	if err != nil {
		return nil, problem.AsError(err)
	}
	var all []*auth.Token
	for i := range records {
		if t, err := a.open(&records[i]); err == nil && by.Grants.Cover(t.Grants) {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(x, y *auth.Token) int { return x.Created.Compare(y.Created) })
	return all, nil
}

// find returns a token that a principal may change: one that it could have made, or its own.
// Others are not there.
func (a *Access) find(ctx context.Context, by *auth.Principal, id string) (*auth.Token, int64, error) {
	records, _, err := a.registry.Records(ctx, kindToken)
	if err != nil {
		return nil, 0, problem.AsError(err)
	}
	i := slices.IndexFunc(records, func(r store.Record) bool { return r.Name == id })
	if i < 0 {
		return nil, 0, noToken()
	}
	t, err := a.open(&records[i])
	if err != nil || by.ID != t.ID && !by.Grants.Cover(t.Grants) {
		return nil, 0, noToken()
	}
	return t, records[i].Version, nil
}

// Rotate makes a token that takes the place of another one, which ends after the overlap.
func (a *Access) Rotate(ctx context.Context, by *auth.Principal, id string, overlap time.Duration) (*auth.Token, auth.Secret, error) {
	old, version, err := a.find(ctx, by, id)
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
	next.Created, next.CreatedBy = now, by.Name
	if !old.Expires.IsZero() {
		next.Expires = now.Add(old.Expires.Sub(old.Created))
		if end := by.Expires; !end.IsZero() && end.Before(next.Expires) {
			next.Expires = end
		}
	}
	made, secret, err := a.keep(ctx, by, &next, now)
	if err != nil {
		return nil, auth.Secret{}, err
	}
	if end := now.Add(overlap); old.Expires.IsZero() || end.Before(old.Expires) {
		old.Expires = end
	}
	old.Successor = made.ID
	return made, secret, a.put(ctx, old, version)
}

// Revoke ends a token.
func (a *Access) Revoke(ctx context.Context, by *auth.Principal, id string) error {
	_, version, err := a.find(ctx, by, id)
	if err != nil {
		return err
	}
	return a.changed(ctx, a.registry.DeleteRecord(ctx, kindToken, id, version))
}
