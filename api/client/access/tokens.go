package access

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ddq-io/ddq/api/client/internal/call"
	"github.com/ddq-io/ddq/api/client/internal/wire"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// Grant is verbs on topics.
type Grant struct {
	// Verbs are enqueue, work, read, payload, operate, admin and audit.
	Verbs []string `json:"verbs"`
	// Namespace is the name of one, or * for every one and the nodes. Empty: that of the call.
	Namespace string `json:"namespace"`
	// Topics is the name of a topic, the beginning of names followed by *, or * for all.
	Topics string `json:"topics"`
}

// Principal is who a server takes the caller for.
type Principal struct {
	Kind           string    `json:"kind"` // local, root, token, node, certificate or oidc
	Name           string    `json:"name"`
	ID             string    `json:"id,omitempty"` // of its token
	Grants         []Grant   `json:"grants"`
	Expires        time.Time `json:"expires,omitzero"` // zero: never
	Authentication bool      `json:"authentication"`   // the server asks callers who they are
	// CallsPerSecond bounds its calls at each node; 0: no bound.
	CallsPerSecond int `json:"calls_per_second,omitempty"`
	// BytesPerSecond bounds the payloads that it sends to each node; 0: no bound.
	BytesPerSecond int `json:"bytes_per_second,omitempty"`
}

// Token is what a server knows of a token. It does not know its secret.
type Token struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Grants    []Grant   `json:"grants"`
	Created   time.Time `json:"created"`
	CreatedBy string    `json:"created_by"`
	// CreatedByID is the token that made it, as others may have the name; empty when another
	// credential did, or it is of before servers kept that.
	CreatedByID string    `json:"created_by_id,omitempty"`
	Expires     time.Time `json:"expires,omitzero"` // zero: never
	Successor   string    `json:"successor,omitempty"`
	// CallsPerSecond bounds its calls at each node; 0: no bound.
	CallsPerSecond int `json:"calls_per_second,omitempty"`
	// BytesPerSecond bounds the payloads that it sends to each node; 0: no bound.
	BytesPerSecond int `json:"bytes_per_second,omitempty"`
}

// NewToken is a token that is to be made.
type NewToken struct {
	Name   string
	Grants []Grant
	Life   time.Duration // defaults to 90 days
	Never  bool          // it does not expire
	// CallsPerSecond bounds its calls at each node, but for those that settle. 0: as the caller's.
	CallsPerSecond int
	// BytesPerSecond bounds the payloads that it sends to each node, but for those in what
	// settles. 0: as the caller's.
	BytesPerSecond int
}

// Access are the calls about who calls, and about tokens and bindings. A client.Client has them.
type Access struct {
	do     call.Do
	access ddqv1.AccessServiceClient
}

// New returns calls that do makes.
func New(do call.Do, access ddqv1.AccessServiceClient) Access { return Access{do, access} }

// WhoAmI returns who the server takes the caller for.
func (c *Access) WhoAmI(ctx context.Context) (Principal, error) {
	r, err := call.Answer(ctx, c.do, call.Idempotent, c.access.WhoAmI, &ddqv1.WhoAmIRequest{})
	if err != nil {
		return Principal{}, err
	}
	return Principal{r.Kind, r.Name, r.Id, grantsOf(r.Grants), wire.Time(r.ExpireTime), r.Authentication, int(r.CallsPerSecond), int(r.BytesPerSecond)}, nil
}

// CreateToken makes a token, and returns its secret, which cannot be had again.
func (c *Access) CreateToken(ctx context.Context, n NewToken) (Token, string, error) {
	req := &ddqv1.CreateTokenRequest{
		Name: n.Name, Grants: grantsTo(n.Grants), NeverExpires: n.Never, CallsPerSecond: wire.Int32(n.CallsPerSecond), BytesPerSecond: wire.Int32(n.BytesPerSecond),
	}
	if n.Life != 0 {
		req.Life = durationpb.New(n.Life)
	}
	r, err := call.Answer(ctx, c.do, call.Once, c.access.CreateToken, req)
	if err != nil {
		return Token{}, "", err
	}
	return tokenOf(r.Token), r.Secret, nil
}

// ListTokens returns the tokens that the caller could have made.
func (c *Access) ListTokens(ctx context.Context) ([]Token, error) {
	r, err := call.Answer(ctx, c.do, call.Idempotent, c.access.ListTokens, &ddqv1.ListTokensRequest{})
	if err != nil {
		return nil, err
	}
	return call.List(r.Tokens, tokenOf), nil
}

// RotateToken makes a token with the grants of another one, which ends after the overlap.
func (c *Access) RotateToken(ctx context.Context, id string, overlap time.Duration) (Token, string, error) {
	r, err := call.Answer(ctx, c.do, call.Once, c.access.RotateToken, &ddqv1.RotateTokenRequest{Id: id, Overlap: durationpb.New(overlap)})
	if err != nil {
		return Token{}, "", err
	}
	return tokenOf(r.Token), r.Secret, nil
}

// RevokeToken ends a token and the streams that it opened.
func (c *Access) RevokeToken(ctx context.Context, id string) error {
	_, err := call.Answer(ctx, c.do, call.Once, c.access.RevokeToken, &ddqv1.RevokeTokenRequest{Id: id})
	return err
}

// RevokeTokenWithMade ends a token, which may be gone, and all that come from it: those that it made,
// and those that they made. What it makes while nodes learn of that, which takes two seconds, is
// found by a repeat.
func (c *Access) RevokeTokenWithMade(ctx context.Context, id string) error {
	_, err := call.Answer(ctx, c.do, call.Once, c.access.RevokeToken, &ddqv1.RevokeTokenRequest{Id: id, WithMade: true})
	return err
}

func tokenOf(t *ddqv1.Token) Token {
	return Token{
		ID: t.GetId(), Name: t.GetName(), Grants: grantsOf(t.GetGrants()), Created: wire.Time(t.GetCreateTime()), CreatedBy: t.GetCreatedBy(), CreatedByID: t.GetCreatedById(),
		Expires: wire.Time(t.GetExpireTime()), Successor: t.GetSuccessor(), CallsPerSecond: int(t.GetCallsPerSecond()), BytesPerSecond: int(t.GetBytesPerSecond()),
	}
}

func grantsOf(from []*ddqv1.Grant) []Grant {
	grants := make([]Grant, len(from))
	for i, g := range from {
		grants[i] = Grant{g.GetVerbs(), g.GetNamespace(), g.GetTopics()}
	}
	return grants
}
