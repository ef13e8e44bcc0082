package access

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/api/client/internal/call"
	"github.com/ddq-io/ddq/api/client/internal/wire"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// Binding gives grants to callers that are known by their client certificate or by a token of
// an issuer. It has one of Certificate and Claim.
type Binding struct {
	Name string `json:"name"`
	// Certificate is a URI in certificates, a prefix of URIs that ends in a slash, or a DNS name.
	Certificate string    `json:"certificate,omitempty"`
	Claim       *Claim    `json:"claim,omitempty"`
	Grants      []Grant   `json:"grants"`
	Created     time.Time `json:"created,omitzero"` // of the server
	CreatedBy   string    `json:"created_by,omitempty"`
}

// Claim is of tokens of an issuer that have a text as the claim, or in it.
type Claim struct {
	Issuer string `json:"issuer"`
	Name   string `json:"name"`
	Value  string `json:"value"`
}

// PutBinding makes a binding, or replaces the one of its name.
func (c *Access) PutBinding(ctx context.Context, b Binding) (Binding, error) {
	req := &ddqv1.Binding{Name: b.Name, Grants: grantsTo(b.Grants)}
	if b.Certificate != "" {
		req.Subject = &ddqv1.Binding_Certificate{Certificate: b.Certificate}
	}
	if b.Claim != nil {
		req.Subject = &ddqv1.Binding_Claim{Claim: &ddqv1.ClaimSubject{Issuer: b.Claim.Issuer, Name: b.Claim.Name, Value: b.Claim.Value}}
	}
	r, err := call.Answer(ctx, c.do, call.Idempotent, c.access.PutBinding, &ddqv1.PutBindingRequest{Binding: req})
	if err != nil {
		return Binding{}, err
	}
	return bindingOf(r.Binding), nil
}

// ListBindings returns the bindings whose grants the caller has.
func (c *Access) ListBindings(ctx context.Context) ([]Binding, error) {
	r, err := call.Answer(ctx, c.do, call.Idempotent, c.access.ListBindings, &ddqv1.ListBindingsRequest{})
	if err != nil {
		return nil, err
	}
	return call.List(r.Bindings, bindingOf), nil
}

// DeleteBinding ends a binding.
func (c *Access) DeleteBinding(ctx context.Context, name string) error {
	_, err := call.Answer(ctx, c.do, call.Once, c.access.DeleteBinding, &ddqv1.DeleteBindingRequest{Name: name})
	return err
}

func bindingOf(b *ddqv1.Binding) Binding {
	out := Binding{
		Name: b.GetName(), Certificate: b.GetCertificate(), Grants: grantsOf(b.GetGrants()),
		Created: wire.Time(b.GetCreateTime()), CreatedBy: b.GetCreatedBy(),
	}
	if claim := b.GetClaim(); claim != nil {
		out.Claim = &Claim{claim.Issuer, claim.Name, claim.Value}
	}
	return out
}

func grantsTo(from []Grant) []*ddqv1.Grant {
	grants := make([]*ddqv1.Grant, len(from))
	for i, g := range from {
		grants[i] = &ddqv1.Grant{Verbs: g.Verbs, Namespace: g.Namespace, Topics: g.Topics}
	}
	return grants
}
