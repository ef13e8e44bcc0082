package server

import (
	"context"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/api/ddqv1"
)

func (t *accessService) PutBinding(ctx context.Context, r *ddqv1.PutBindingRequest) (*ddqv1.PutBindingResponse, error) {
	b, e := readBinding(t.caller(ctx), r.GetBinding())
	if e != nil {
		return nil, e
	}
	put, err := t.access.Bindings.Bind(ctx, t.caller(ctx), b)
	if err != nil {
		return nil, err
	}
	return &ddqv1.PutBindingResponse{Binding: bindingWire(put)}, nil
}

func (t *accessService) ListBindings(ctx context.Context, _ *ddqv1.ListBindingsRequest) (*ddqv1.ListBindingsResponse, error) {
	all, err := t.access.Bindings.List(ctx, t.caller(ctx))
	if err != nil {
		return nil, err
	}
	out := &ddqv1.ListBindingsResponse{}
	for _, b := range all {
		out.Bindings = append(out.Bindings, bindingWire(b))
	}
	return out, nil
}

func (t *accessService) DeleteBinding(ctx context.Context, r *ddqv1.DeleteBindingRequest) (*ddqv1.DeleteBindingResponse, error) {
	return &ddqv1.DeleteBindingResponse{}, t.access.Bindings.Unbind(ctx, t.caller(ctx), r.Name)
}

func readBinding(by *auth.Principal, from *ddqv1.Binding) (*auth.Binding, *problem.Error) {
	grants, e := readGrants(by, from.GetGrants())
	if e != nil {
		return nil, e
	}
	return &auth.Binding{
		Name: from.GetName(), Certificate: from.GetCertificate(), Grants: grants,
		Issuer: from.GetClaim().GetIssuer(), Claim: from.GetClaim().GetName(), Value: from.GetClaim().GetValue(),
	}, nil
}

func bindingWire(b *auth.Binding) *ddqv1.Binding {
	out := &ddqv1.Binding{Name: b.Name, Grants: grantsWire(b.Grants), CreateTime: timestamppb.New(b.Created), CreatedBy: b.CreatedBy}
	if b.Certificate != "" {
		out.Subject = &ddqv1.Binding_Certificate{Certificate: b.Certificate}
	} else {
		out.Subject = &ddqv1.Binding_Claim{Claim: &ddqv1.ClaimSubject{Issuer: b.Issuer, Name: b.Claim, Value: b.Value}}
	}
	return out
}
