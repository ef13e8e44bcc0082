package server

import (
	"context"

	"github.com/ddq-io/ddq/api/access"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/service/scope"
	"github.com/ddq-io/ddq/api/service/tenants"
)

func (t *accessService) CreateNamespace(ctx context.Context, r *ddqv1.CreateNamespaceRequest) (*ddqv1.CreateNamespaceResponse, error) {
	if e := access.CheckNamespace("name", r.Name); e != nil {
		return nil, e
	}
	var quotas access.Quotas
	changeQuotas(r.Quotas)(&quotas)
	made, err := t.access.Namespaces.Create(ctx, t.caller(ctx), r.Name, quotas)
	if err != nil {
		return nil, err
	}
	return &ddqv1.CreateNamespaceResponse{Namespace: namespaceWire(made)}, nil
}

func (t *accessService) GetNamespace(ctx context.Context, r *ddqv1.GetNamespaceRequest) (*ddqv1.GetNamespaceResponse, error) {
	one, err := t.access.Namespaces.Get(ctx, r.Name)
	if err != nil {
		return nil, err
	}
	used, err := t.contents.Usage(scope.With(ctx, one.Name))
	if err != nil {
		return nil, err
	}
	usage := &ddqv1.NamespaceUsage{Pending: used.Pending, InFlight: used.InFlight, Topics: used.Topics, Schedules: used.Schedules, Streams: used.Streams}
	return &ddqv1.GetNamespaceResponse{Namespace: namespaceWire(one), Usage: usage}, nil
}

func (t *accessService) ListNamespaces(ctx context.Context, _ *ddqv1.ListNamespacesRequest) (*ddqv1.ListNamespacesResponse, error) {
	all, err := t.access.Namespaces.List(ctx)
	if err != nil {
		return nil, err
	}
	out := &ddqv1.ListNamespacesResponse{}
	for _, one := range all {
		out.Namespaces = append(out.Namespaces, namespaceWire(one))
	}
	return out, nil
}

func (t *accessService) ConfigureNamespace(ctx context.Context, r *ddqv1.ConfigureNamespaceRequest) (*ddqv1.ConfigureNamespaceResponse, error) {
	one, err := t.access.Namespaces.Configure(ctx, r.Name, changeQuotas(r.Quotas))
	if err != nil {
		return nil, err
	}
	return &ddqv1.ConfigureNamespaceResponse{Namespace: namespaceWire(one)}, nil
}

func (t *accessService) DeleteNamespace(ctx context.Context, r *ddqv1.DeleteNamespaceRequest) (*ddqv1.DeleteNamespaceResponse, error) {
	return &ddqv1.DeleteNamespaceResponse{}, t.access.Namespaces.Delete(ctx, r.Name, func() error {
		return t.contents.Empty(scope.With(ctx, r.Name))
	})
}

// quotasOf says what quotas a namespace has, if it has any.
func quotasOf(all *access.Namespaces) func(string) *tenants.Quotas {
	return func(namespace string) *tenants.Quotas {
		q := all.Quotas(namespace)
		if q == nil {
			return nil
		}
		return &tenants.Quotas{
			EnqueuePerSecond: q.EnqueuePerSecond, EnqueueBurst: q.EnqueueBurst, MaxPending: q.MaxPending, MaxPayloadBytes: q.MaxPayloadBytes,
			BytesPerSecond: q.BytesPerSecond, MaxTopics: q.MaxTopics, MaxSchedules: q.MaxSchedules, MaxStreams: q.MaxStreams,
			MaxInFlight: q.MaxInFlight,
		}
	}
}

// changeQuotas changes those that a request sets.
func changeQuotas(from *ddqv1.Quotas) func(*access.Quotas) {
	return func(to *access.Quotas) {
		if from == nil {
			return
		}
		if from.EnqueuePerSecond != nil {
			to.EnqueuePerSecond = *from.EnqueuePerSecond
		}
		for _, q := range []struct {
			to   *int64
			from *int64
		}{
			{&to.EnqueueBurst, from.EnqueueBurst}, {&to.MaxPending, from.MaxPending},
			{&to.MaxPayloadBytes, from.MaxPayloadBytes}, {&to.BytesPerSecond, from.BytesPerSecond},
			{&to.MaxTopics, from.MaxTopics}, {&to.MaxSchedules, from.MaxSchedules}, {&to.MaxStreams, from.MaxStreams},
			{&to.MaxInFlight, from.MaxInFlight},
		} {
			if q.from != nil {
				*q.to = *q.from
			}
		}
	}
}

// namespaceWire leaves out quotas that there are none of.
func namespaceWire(n *access.Namespace) *ddqv1.Namespace {
	out := &ddqv1.Namespace{Name: n.Name, CreatedBy: n.CreatedBy, CreateTime: endWire(n.Created), Quotas: &ddqv1.Quotas{}}
	q := &n.Quotas
	if q.EnqueuePerSecond != 0 {
		out.Quotas.EnqueuePerSecond = &q.EnqueuePerSecond
	}
	set := func(to **int64, from *int64) {
		if *from != 0 {
			*to = from
		}
	}
	set(&out.Quotas.EnqueueBurst, &q.EnqueueBurst)
	set(&out.Quotas.MaxPending, &q.MaxPending)
	set(&out.Quotas.MaxPayloadBytes, &q.MaxPayloadBytes)
	set(&out.Quotas.BytesPerSecond, &q.BytesPerSecond)
	set(&out.Quotas.MaxTopics, &q.MaxTopics)
	set(&out.Quotas.MaxSchedules, &q.MaxSchedules)
	set(&out.Quotas.MaxStreams, &q.MaxStreams)
	set(&out.Quotas.MaxInFlight, &q.MaxInFlight)
	return out
}
