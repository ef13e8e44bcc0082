// Package tenants bounds what namespaces have and do, by their quotas: at each node by what it was allowed, and over
// all nodes by what the store counts.
package tenants

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/service/intake"
	"github.com/ddq-io/ddq/api/service/scope"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// Tenants let what namespaces with quotas ask for in. It is safe for concurrent use.
type Tenants struct {
	node   *actors.Node
	store  Store
	quotas func(namespace string) *Quotas // nil: no namespace has any

	mu sync.Mutex
	by map[string]*intake.Tenant // by namespace; guarded by mu

	streams streams
}

// Store is the role of the store for Tenants.
type Store interface {
	store.Catalog
	store.Limits
}

// New returns the tenants of a node. No namespace has quotas.
func New(node *actors.Node, st Store) *Tenants { return &Tenants{node: node, store: st} }

// SetQuotas says where the quotas of a namespace are found: nil for one that has none. It is called before the
// others.
func (s *Tenants) SetQuotas(of func(namespace string) *Quotas) {
	s.quotas = of
	s.node.Topics().Admit = s.admitTopic
	s.node.Topics().Caps.Set(s.maxInFlight)
}

// maxInFlight is how many tasks of a namespace may be held; 0: any number.
func (s *Tenants) maxInFlight(namespace string) int {
	q := s.quotasOf(namespace)
	if q == nil {
		return 0
	}
	return int(q.MaxInFlight)
}

// quotasOf are those of a namespace; nil when it has none.
func (s *Tenants) quotasOf(namespace string) *Quotas {
	if s.quotas == nil {
		return nil
	}
	return s.quotas(namespace)
}

func (s *Tenants) of(namespace string) *intake.Tenant {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by = make(map[string]*intake.Tenant)
	}
	t := s.by[namespace]
	if t == nil {
		t = new(intake.Tenant)
		s.by[namespace] = t
	}
	return t
}

// counter asks the store what there is of something.
type counter func(context.Context) (int64, error)

// take lets one more of something in, of which there may be so many, and reports whether there is room. Where that
// is not known, count asks the store what there is, or another call does and this one waits.
func (s *Tenants) take(ctx context.Context, a *intake.Allowance, most int, count counter) (in bool, err *problem.Error) {
	for {
		switch a.Take(time.Now(), most) {
		case intake.LetIn:
			return true, nil
		case intake.TurnedAway:
			return false, nil
		}
		if err := s.look(ctx, a, most, count); err != nil {
			return false, err
		}
	}
}

func (s *Tenants) look(ctx context.Context, a *intake.Allowance, most int, count counter) *problem.Error {
	mine, over := a.Begin()
	if !mine {
		select {
		case <-over:
			return nil
		case <-ctx.Done():
			return problem.FromStore(ctx.Err())
		}
	}
	defer a.End()
	there, err := count(ctx)
	if err != nil {
		return problem.FromStore(err)
	}
	a.Seen(time.Now(), int(min(there, actors.MaxTasks)), most, len(s.node.Members()))
	return nil
}

// shards are those of the topics of a namespace.
func (s *Tenants) shards(ctx context.Context, namespace string) ([]store.Shard, error) {
	topics, err := s.topics(ctx, namespace)
	return shardsOf(topics), err
}

// topics are those of a namespace.
func (s *Tenants) topics(ctx context.Context, namespace string) ([]store.Topic, error) {
	all, err := s.store.ListTopics(ctx)
	if err != nil {
		return nil, err
	}
	return scope.Topics(scope.With(ctx, namespace), all), nil
}

func shardsOf(topics []store.Topic) (shards []store.Shard) {
	for i := range topics {
		shards = append(shards, place.Shards(&topics[i])...)
	}
	return shards
}

// limitKey is where the store keeps a limit of a namespace. No topic has that name.
func limitKey(namespace, limit string) store.LimitKey {
	return store.LimitKey{Topic: namespace + "/", Key: limit}
}

// slowPause is when to come back where only that something is deleted makes room.
const slowPause = 10 * time.Second

// overQuota counts that a namespace has what it may, and says so.
func (s *Tenants) overQuota(namespace, quota string, pause time.Duration, format string, args ...any) *problem.Error {
	s.node.Metrics().CountOverQuota(namespace, quota)
	return &problem.Error{Kind: problem.Exhausted, Reason: "QUOTA", RetryAfter: pause,
		Message: fmt.Sprintf("%s: namespace %q has its ", quota, namespace) + fmt.Sprintf(format, args...)}
}
