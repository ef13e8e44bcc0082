package access

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/store"
)

// Namespace is what is kept of a namespace, under its name.
type Namespace struct {
	Name      string    `json:"name"`
	Quotas    Quotas    `json:"quotas"`
	Created   time.Time `json:"created"`
	CreatedBy string    `json:"created_by"`

	version int64  // of its record
	was     []byte // what was in it; nil: there was none
}

// Quotas bound what a namespace has and does, over all nodes. 0 is no bound.
type Quotas struct {
	EnqueuePerSecond float64 `json:"enqueue_per_second,omitzero"`
	EnqueueBurst     int64   `json:"enqueue_burst,omitzero"`     // 0: as many as in a second
	MaxPending       int64   `json:"max_pending,omitzero"`       // tasks
	MaxPayloadBytes  int64   `json:"max_payload_bytes,omitzero"` // of one task
	BytesPerSecond   int64   `json:"bytes_per_second,omitzero"`  // of payloads that are enqueued
	MaxTopics        int64   `json:"max_topics,omitzero"`
	MaxSchedules     int64   `json:"max_schedules,omitzero"`
	MaxStreams       int64   `json:"max_streams,omitzero"`   // of workers
	MaxInFlight      int64   `json:"max_in_flight,omitzero"` // tasks that workers hold
}

// Namespaces are those of the registry.
type Namespaces struct {
	registry *registry
	byName   atomic.Pointer[map[string]*Namespace] // nobody changes the map
}

func newNamespaces(registry *registry) *Namespaces {
	n := &Namespaces{registry: registry}
	n.byName.Store(&map[string]*Namespace{})
	return n
}

func (n *Namespaces) kind() string { return kindNamespace }

func (n *Namespaces) learn(records []store.Record) {
	all := make(map[string]*Namespace, len(records))
	for _, one := range n.open(records) {
		all[one.Name] = one
	}
	n.byName.Store(&all)
}

// open leaves out what cannot be believed. The order is that of names.
func (n *Namespaces) open(records []store.Record) []*Namespace {
	all := make([]*Namespace, 0, len(records))
	for i := range records {
		one, err := n.openOne(&records[i])
		if err != nil {
			n.registry.log.Error("record of a namespace cannot be believed: it does not count", "namespace", records[i].Name, "err", err)
			continue
		}
		all = append(all, one)
	}
	return all
}

func (n *Namespaces) openOne(r *store.Record) (*Namespace, error) {
	one := &Namespace{version: r.Version}
	var err error
	if one.was, err = n.registry.read(r, one); err != nil {
		return nil, err
	}
	if one.Name != r.Name {
		return nil, errors.New("it is that of another namespace")
	}
	return one, nil
}

// Known reports whether there is a namespace. One that was made elsewhere just now is looked for.
func (n *Namespaces) Known(ctx context.Context, name string) (bool, *problem.Error) {
	if name == store.DefaultNamespace || n.of(name) != nil {
		return true, nil
	}
	if n.registry.lookFor(ctx) != nil {
		return false, notNow()
	}
	return n.of(name) != nil, nil
}

// of is a namespace as it is known; nil when there is none.
func (n *Namespaces) of(name string) *Namespace { return (*n.byName.Load())[name] }

// Several reports whether there is a namespace beside the default one.
func (n *Namespaces) Several() bool {
	all := *n.byName.Load()
	return len(all) > 1 || len(all) == 1 && all[store.DefaultNamespace] == nil
}

// Quotas are those of a namespace; nil when it has none.
func (n *Namespaces) Quotas(name string) *Quotas {
	one := n.of(name)
	if one == nil || one.Quotas == (Quotas{}) {
		return nil
	}
	return &one.Quotas
}

// check says what is wrong with quotas.
func (q *Quotas) check() *problem.Error {
	if q.EnqueuePerSecond < 0 || q.EnqueuePerSecond > store.MaxRateCount || q.EnqueuePerSecond != q.EnqueuePerSecond {
		return problem.BadField("quotas.enqueue_per_second", "OUT_OF_RANGE_FIELD", "quotas.enqueue_per_second must be 0 to %d", store.MaxRateCount)
	}
	for _, one := range []struct {
		field   string
		n, most int64
	}{
		{"enqueue_burst", q.EnqueueBurst, store.MaxBurst}, {"max_pending", q.MaxPending, maxQuota}, {"max_payload_bytes", q.MaxPayloadBytes, maxQuota},
		{"bytes_per_second", q.BytesPerSecond, maxBytesPerSecond}, {"max_topics", q.MaxTopics, maxQuota}, {"max_schedules", q.MaxSchedules, maxQuota},
		{"max_streams", q.MaxStreams, maxPermits}, {"max_in_flight", q.MaxInFlight, maxPermits},
	} {
		if one.n < 0 || one.n > one.most {
			return problem.BadField("quotas."+one.field, "OUT_OF_RANGE_FIELD", "quotas.%s must be 0 to %d", one.field, one.most)
		}
	}
	return nil
}

const (
	maxQuota          = 1_000_000_000     // the largest bound of how many, and of the bytes of a payload
	maxBytesPerSecond = 1_000_000_000_000 // as 4,096 tokens of 244 MB each
	maxPermits        = 1_000_000         // each of which the store remembers
)

func noNamespace(name string) *problem.Error {
	return &problem.Error{Kind: problem.NotFound, Reason: "NO_NAMESPACE", Field: "name", Message: fmt.Sprintf("no namespace %q", name)}
}

// read returns a namespace as the store has it. The default one is always there.
func (n *Namespaces) read(ctx context.Context, name string) (*Namespace, error) {
	records, _, err := n.registry.Records(ctx, kindNamespace)
	if err != nil {
		return nil, problem.AsError(err)
	}
	i := slices.IndexFunc(records, func(r store.Record) bool { return r.Name == name })
	switch {
	case i >= 0:
		one, err := n.openOne(&records[i])
		if err != nil { // whoever wrote it has not the key of the fleet: it may be replaced
			return &Namespace{Name: name, version: records[i].Version}, nil
		}
		return one, nil
	case name == store.DefaultNamespace:
		return &Namespace{Name: name}, nil
	}
	return nil, noNamespace(name)
}

// CheckNamespace says why a namespace cannot have a name.
func CheckNamespace(field, name string) *problem.Error {
	switch {
	case len(name) > store.MaxNamespaceBytes:
		return problem.BadField(field, "NAME_TOO_LONG", "%s has %d bytes; at most %d are allowed", field, len(name), store.MaxNamespaceBytes)
	case !store.IsNamespace(name):
		return problem.BadField(field, "BAD_NAME", "%s must match [a-z0-9][a-z0-9-]*", field)
	}
	return nil
}

// Get returns a namespace.
func (n *Namespaces) Get(ctx context.Context, name string) (*Namespace, error) {
	return n.read(ctx, name)
}

// List returns all, by name.
func (n *Namespaces) List(ctx context.Context) ([]*Namespace, error) {
	records, _, err := n.registry.Records(ctx, kindNamespace)
	if err != nil {
		return nil, problem.AsError(err)
	}
	all := n.open(records)
	if !slices.ContainsFunc(all, func(one *Namespace) bool { return one.Name == store.DefaultNamespace }) {
		all = append(all, &Namespace{Name: store.DefaultNamespace})
	}
	slices.SortFunc(all, func(a, b *Namespace) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Create makes a namespace, whose name the caller has checked.
func (n *Namespaces) Create(ctx context.Context, by *auth.Principal, name string, quotas Quotas) (*Namespace, error) {
	exists := &problem.Error{Kind: problem.Exists, Reason: "NAMESPACE_EXISTS", Field: "name", Message: fmt.Sprintf("namespace %q exists", name)}
	if name == store.DefaultNamespace {
		return nil, exists
	}
	if e := quotas.check(); e != nil {
		return nil, e
	}
	one := &Namespace{Name: name, Quotas: quotas, Created: time.Now().UTC().Truncate(time.Millisecond), CreatedBy: by.Name}
	err := n.put(ctx, one)
	if errors.Is(err, store.ErrVersion) {
		return nil, exists
	}
	return one, n.registry.changed(ctx, err)
}

// Configure changes the quotas of a namespace.
func (n *Namespaces) Configure(ctx context.Context, name string, change func(*Quotas)) (*Namespace, error) {
	one, err := n.read(ctx, name)
	if err != nil {
		return nil, err
	}
	change(&one.Quotas)
	if e := one.Quotas.check(); e != nil {
		return nil, e
	}
	return one, n.registry.changed(ctx, n.put(ctx, one))
}

func (n *Namespaces) put(ctx context.Context, one *Namespace) error {
	_, err := n.registry.write(ctx, store.Record{Kind: kindNamespace, Name: one.Name, Version: one.version, Value: one.was}, one)
	return err
}

// Delete deletes a namespace, unless empty says what is in it. What other nodes make in it until they know, within
// two seconds, nobody sees until there is a namespace of that name again.
func (n *Namespaces) Delete(ctx context.Context, name string, empty func() error) error {
	if name == store.DefaultNamespace {
		return &problem.Error{Kind: problem.Precondition, Reason: "NAMESPACE_NOT_EMPTY", Field: "name", Message: "the namespace default cannot be deleted"}
	}
	one, err := n.read(ctx, name)
	if err != nil {
		return err
	}
	if err := empty(); err != nil {
		return err
	}
	return n.registry.changed(ctx, n.registry.DeleteRecord(ctx, kindNamespace, name, one.version))
}
