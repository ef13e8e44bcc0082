package access

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/api/client/internal/call"
	"github.com/ddq-io/ddq/api/client/internal/wire"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// Namespace is a part of a server for one tenant.
type Namespace struct {
	Name      string    `json:"name"`
	Quotas    Quotas    `json:"quotas"`
	Created   time.Time `json:"created,omitzero"` // of the server
	CreatedBy string    `json:"created_by,omitempty"`
	Usage     *Usage    `json:"usage,omitempty"` // of GetNamespace; else nil
}

// Usage is what a namespace has of what quotas bound, over all nodes. It is approximate: it changes while it is counted.
type Usage struct {
	Pending   int64  `json:"pending"`             // tasks that wait or are ready
	InFlight  int64  `json:"in_flight"`           // tasks that workers hold
	Topics    int64  `json:"topics"`              //
	Schedules *int64 `json:"schedules,omitempty"` // 10,000 are counted at most; nil: it has no quota of them
	Streams   *int64 `json:"streams,omitempty"`   // of workers, that are open; nil: it has no quota of them
}

// Quotas bound what a namespace has and does, over all nodes. What is over one is refused with
// CodeResourceExhausted; settling never is. 0 is no bound.
type Quotas struct {
	EnqueuePerSecond float64 `json:"enqueue_per_second,omitempty"` // tasks
	EnqueueBurst     int64   `json:"enqueue_burst,omitempty"`      // tasks at once, after a rest; 0: as many as in a second
	MaxPending       int64   `json:"max_pending,omitempty"`        // tasks that wait or are ready
	MaxPayloadBytes  int64   `json:"max_payload_bytes,omitempty"`  // of one task
	BytesPerSecond   int64   `json:"bytes_per_second,omitempty"`   // of payloads that are enqueued, and as many at once, after a rest
	MaxTopics        int64   `json:"max_topics,omitempty"`
	MaxSchedules     int64   `json:"max_schedules,omitempty"` // in all topics
	MaxStreams       int64   `json:"max_streams,omitempty"`   // of workers, that are open
	MaxInFlight      int64   `json:"max_in_flight,omitempty"` // tasks that workers hold; others wait
}

// QuotaChange changes the quotas that are not nil; 0 takes one away.
type QuotaChange struct {
	EnqueuePerSecond *float64
	EnqueueBurst     *int64
	MaxPending       *int64
	MaxPayloadBytes  *int64
	BytesPerSecond   *int64
	MaxTopics        *int64
	MaxSchedules     *int64
	MaxStreams       *int64
	MaxInFlight      *int64
}

func (c *QuotaChange) to() *ddqv1.Quotas {
	return &ddqv1.Quotas{
		EnqueuePerSecond: c.EnqueuePerSecond, EnqueueBurst: c.EnqueueBurst, MaxPending: c.MaxPending,
		MaxPayloadBytes: c.MaxPayloadBytes, BytesPerSecond: c.BytesPerSecond,
		MaxTopics: c.MaxTopics, MaxSchedules: c.MaxSchedules, MaxStreams: c.MaxStreams, MaxInFlight: c.MaxInFlight,
	}
}

// CreateNamespace makes a namespace.
func (c *Access) CreateNamespace(ctx context.Context, name string, quotas QuotaChange) (Namespace, error) {
	r, err := call.Answer(ctx, c.do, call.Once, c.access.CreateNamespace, &ddqv1.CreateNamespaceRequest{Name: name, Quotas: quotas.to()})
	if err != nil {
		return Namespace{}, err
	}
	return namespaceOf(r.Namespace), nil
}

// GetNamespace returns a namespace, and what it has of what its quotas bound.
func (c *Access) GetNamespace(ctx context.Context, name string) (Namespace, error) {
	r, err := call.Answer(ctx, c.do, call.Idempotent, c.access.GetNamespace, &ddqv1.GetNamespaceRequest{Name: name})
	if err != nil {
		return Namespace{}, err
	}
	n := namespaceOf(r.Namespace)
	if u := r.Usage; u != nil { // a server of before has none
		n.Usage = &Usage{u.Pending, u.InFlight, u.Topics, u.Schedules, u.Streams}
	}
	return n, nil
}

// ListNamespaces returns all, by name.
func (c *Access) ListNamespaces(ctx context.Context) ([]Namespace, error) {
	r, err := call.Answer(ctx, c.do, call.Idempotent, c.access.ListNamespaces, &ddqv1.ListNamespacesRequest{})
	if err != nil {
		return nil, err
	}
	return call.List(r.Namespaces, namespaceOf), nil
}

// ConfigureNamespace changes the quotas of a namespace.
func (c *Access) ConfigureNamespace(ctx context.Context, name string, change QuotaChange) (Namespace, error) {
	r, err := call.Answer(ctx, c.do, call.Idempotent, c.access.ConfigureNamespace, &ddqv1.ConfigureNamespaceRequest{Name: name, Quotas: change.to()})
	if err != nil {
		return Namespace{}, err
	}
	return namespaceOf(r.Namespace), nil
}

// DeleteNamespace deletes a namespace without topics and audiences.
func (c *Access) DeleteNamespace(ctx context.Context, name string) error {
	_, err := call.Answer(ctx, c.do, call.Once, c.access.DeleteNamespace, &ddqv1.DeleteNamespaceRequest{Name: name})
	return err
}

func namespaceOf(n *ddqv1.Namespace) Namespace {
	q := n.GetQuotas()
	return Namespace{
		Name: n.GetName(), Created: wire.Time(n.GetCreateTime()), CreatedBy: n.GetCreatedBy(),
		Quotas: Quotas{
			EnqueuePerSecond: q.GetEnqueuePerSecond(), EnqueueBurst: q.GetEnqueueBurst(), MaxPending: q.GetMaxPending(),
			MaxPayloadBytes: q.GetMaxPayloadBytes(), BytesPerSecond: q.GetBytesPerSecond(),
			MaxTopics: q.GetMaxTopics(), MaxSchedules: q.GetMaxSchedules(), MaxStreams: q.GetMaxStreams(), MaxInFlight: q.GetMaxInFlight(),
		},
	}
}
