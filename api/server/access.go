package server

import (
	"cmp"
	"context"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/access"
	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/service/scope"
	"github.com/ddq-io/ddq/api/service/tenants"
	"github.com/ddq-io/ddq/api/wire"
)

// accessService serves AccessService.
type accessService struct {
	ddqv1.UnsafeAccessServiceServer
	access   *access.Access
	contents contents
}

// contents says what is in the namespace of a call.
type contents interface {
	Empty(ctx context.Context) error
	Usage(ctx context.Context) (tenants.Usage, error)
}

var _ ddqv1.AccessServiceServer = (*accessService)(nil)

// caller is who calls; local where nobody is asked.
func (t *accessService) caller(ctx context.Context) *auth.Principal {
	if p := auth.From(ctx); p != nil {
		return p
	}
	return t.access.Local().In(scope.Of(ctx))
}

func (t *accessService) WhoAmI(ctx context.Context, _ *ddqv1.WhoAmIRequest) (*ddqv1.WhoAmIResponse, error) {
	p := t.caller(ctx)
	return &ddqv1.WhoAmIResponse{
		Kind: p.Kind.String(), Name: p.Name, Id: p.ID, Namespace: p.Namespace,
		Grants: grantsWire(p.Grants), ExpireTime: endWire(p.Expires), Authentication: t.access.On(),
		CallsPerSecond: int32(p.CallsPerSecond), BytesPerSecond: int32(p.BytesPerSecond),
	}, nil
}

func (t *accessService) CreateToken(ctx context.Context, r *ddqv1.CreateTokenRequest) (*ddqv1.CreateTokenResponse, error) {
	grants, e := readGrants(t.caller(ctx), r.Grants)
	if e != nil {
		return nil, e
	}
	n := access.NewToken{Name: r.Name, Grants: grants, Never: r.NeverExpires, CallsPerSecond: int(r.CallsPerSecond), BytesPerSecond: int(r.BytesPerSecond)}
	if r.Life != nil {
		if n.Life, e = wire.Delay(r.Life, "life"); e != nil {
			return nil, e
		}
		if n.Life <= 0 {
			return nil, wire.Invalid("BAD_GRANT", "life", "must be above 0")
		}
	}
	made, secret, err := t.access.Tokens.Create(ctx, t.caller(ctx), n)
	if err != nil {
		return nil, err
	}
	return &ddqv1.CreateTokenResponse{Token: tokenWire(made), Secret: secret.Reveal()}, nil
}

func (t *accessService) ListTokens(ctx context.Context, _ *ddqv1.ListTokensRequest) (*ddqv1.ListTokensResponse, error) {
	all, err := t.access.Tokens.List(ctx, t.caller(ctx))
	if err != nil {
		return nil, err
	}
	out := &ddqv1.ListTokensResponse{}
	for _, k := range all {
		out.Tokens = append(out.Tokens, tokenWire(k))
	}
	return out, nil
}

func (t *accessService) RotateToken(ctx context.Context, r *ddqv1.RotateTokenRequest) (*ddqv1.RotateTokenResponse, error) {
	overlap := time.Duration(0)
	if r.Overlap != nil {
		var e *problem.Error
		if overlap, e = wire.Delay(r.Overlap, "overlap"); e != nil {
			return nil, e
		}
	}
	made, secret, err := t.access.Tokens.Rotate(ctx, t.caller(ctx), r.Id, overlap)
	if err != nil {
		return nil, err
	}
	return &ddqv1.RotateTokenResponse{Token: tokenWire(made), Secret: secret.Reveal()}, nil
}

func (t *accessService) RevokeToken(ctx context.Context, r *ddqv1.RevokeTokenRequest) (*ddqv1.RevokeTokenResponse, error) {
	revoke := t.access.Tokens.Revoke
	if r.WithMade {
		revoke = t.access.Tokens.RevokeWithMade
	}
	return &ddqv1.RevokeTokenResponse{}, revoke(ctx, t.caller(ctx), r.Id)
}

// readGrants reads grants of a request. Each may have names of roles among its verbs. One that says no
// namespace is of that of the caller.
func readGrants(by *auth.Principal, from []*ddqv1.Grant) (auth.Grants, *problem.Error) {
	grants := make(auth.Grants, len(from))
	for i, g := range from {
		for _, name := range g.GetVerbs() {
			v, err := auth.ParseVerb(name)
			if err != nil {
				return nil, wire.Invalid("BAD_GRANT", "grants", "%v", err)
			}
			grants[i].Verbs |= v
		}
		grants[i].Namespace, grants[i].Topics = cmp.Or(g.GetNamespace(), by.Namespace), auth.Pattern(g.GetTopics())
	}
	return grants, nil
}

func grantsWire(from auth.Grants) []*ddqv1.Grant {
	out := make([]*ddqv1.Grant, len(from))
	for i, g := range from {
		out[i] = &ddqv1.Grant{Verbs: g.Verbs.Names(), Namespace: g.Namespace, Topics: string(g.Topics)}
	}
	return out
}

func tokenWire(k *auth.Token) *ddqv1.Token {
	return &ddqv1.Token{
		Id: k.ID, Name: k.Name, Grants: grantsWire(k.Grants), CreateTime: timestamppb.New(k.Created), CreatedBy: k.CreatedBy, CreatedById: k.MadeBy(),
		ExpireTime: endWire(k.Expires), Successor: k.Successor, CallsPerSecond: int32(k.CallsPerSecond), BytesPerSecond: int32(k.BytesPerSecond),
	}
}

// endWire leaves out an end that never comes.
func endWire(at time.Time) *timestamppb.Timestamp {
	if at.IsZero() {
		return nil
	}
	return timestamppb.New(at)
}
