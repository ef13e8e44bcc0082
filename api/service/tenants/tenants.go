// Package tenants bounds what is enqueued in namespaces, by their quotas: at each node by what it was allowed, and
// over all nodes by what the store counts.
package tenants

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/service/intake"
	"github.com/ddq-io/ddq/api/service/scope"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// Quotas bound what may be enqueued in a namespace, over all nodes. 0 is no bound.
type Quotas struct {
	EnqueuePerSecond float64
	EnqueueBurst     int64 // 0: as many as in a second
	MaxPending       int64 // tasks
	MaxPayloadBytes  int64 // of one task
}

// rate is that of tasks that are enqueued.
func (q *Quotas) rate() store.Rate {
	r := store.Rate{Kind: store.TokenBucket, Count: int(math.Round(q.EnqueuePerSecond)), Period: time.Second}
	if q.EnqueuePerSecond != math.Trunc(q.EnqueuePerSecond) {
		r.Count, r.Period = max(1, int(math.Round(q.EnqueuePerSecond*time.Hour.Seconds()))), time.Hour
	}
	r.Burst = int(min(store.MaxBurst, max(1, cmp.Or(q.EnqueueBurst, int64(math.Ceil(q.EnqueuePerSecond))))))
	return r
}

// Tenants let tasks into namespaces that have quotas. It is safe for concurrent use.
type Tenants struct {
	node   *actors.Node
	store  Store
	quotas func(namespace string) *Quotas // nil: no namespace has any

	mu sync.Mutex
	by map[string]*intake.Tenant // by namespace; guarded by mu
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
func (s *Tenants) SetQuotas(of func(namespace string) *Quotas) { s.quotas = of }

// Enter returns what the tasks of a request pass on their way into the namespace of the call; nil where it has
// no quotas.
func (s *Tenants) Enter(ctx context.Context, n int) *Entry {
	if s.quotas == nil {
		return nil
	}
	namespace := scope.Of(ctx)
	q := s.quotas(namespace)
	if q == nil {
		return nil
	}
	return &Entry{Tenants: s, tenant: s.of(namespace), namespace: namespace, quotas: q, left: n}
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

// Entry is where the tasks of one request pass the quotas of their namespace.
type Entry struct {
	*Tenants
	tenant    *intake.Tenant
	namespace string
	quotas    *Quotas
	left      int // tasks of the request that have not passed
	pending   int // tasks that count as in flight until Leave
}

// Admit lets a task in, or says which quota is used up. nil admits all.
func (e *Entry) Admit(ctx context.Context, t *store.Task) *problem.Error {
	if e == nil {
		return nil
	}
	defer func() { e.left-- }()
	if n, most := int64(len(t.Payload)), e.quotas.MaxPayloadBytes; most > 0 && n > most {
		return problem.BadField("payload", "PAYLOAD_TOO_LARGE", "payload has %d bytes; at most %d are allowed", n, most)
	}
	if err := e.room(ctx); err != nil {
		return err
	}
	return e.turn(ctx)
}

// room says that as many tasks wait in the namespace as may.
func (e *Entry) room(ctx context.Context) *problem.Error {
	most := int(min(e.quotas.MaxPending, actors.MaxTasks))
	if most == 0 {
		return nil
	}
	for {
		switch e.tenant.Backlog.Take(time.Now(), most) {
		case intake.LetIn:
			e.pending++
			return nil
		case intake.TurnedAway:
			return overQuota(problem.RetrySoon, "max_pending: namespace %q has its %d tasks waiting", e.namespace, most)
		}
		if err := e.look(ctx, most); err != nil {
			return err
		}
	}
}

// look asks the store what waits in the namespace, or waits for who does.
func (e *Entry) look(ctx context.Context, most int) *problem.Error {
	backlog := &e.tenant.Backlog
	mine, over := backlog.Begin()
	if !mine {
		select {
		case <-over:
			return nil
		case <-ctx.Done():
			return problem.FromStore(ctx.Err())
		}
	}
	defer backlog.End()
	topics, err := e.store.ListTopics(ctx)
	if err != nil {
		return problem.FromStore(err)
	}
	var shards []store.Shard
	for _, t := range scope.Topics(ctx, topics) {
		shards = append(shards, place.Shards(&t)...)
	}
	stats, err := e.node.CountsOf(ctx, shards)
	if err != nil {
		return problem.FromStore(err)
	}
	waiting := int64(0)
	for i := range stats {
		waiting += stats[i].Pending
	}
	backlog.Seen(time.Now(), int(min(waiting, actors.MaxTasks)), most, len(e.node.Members()))
	return nil
}

// turn takes a token of the rate of the namespace.
func (e *Entry) turn(ctx context.Context) *problem.Error {
	if e.quotas.EnqueuePerSecond == 0 {
		return nil
	}
	rate := e.quotas.rate()
	for {
		taken, reserve, wait := e.tenant.Tokens.Take(time.Now(), rate, e.left)
		switch {
		case taken:
			return nil
		case reserve == 0:
			return &problem.Error{Kind: problem.Exhausted, Reason: "RATE_LIMITED", RetryAfter: max(wait, time.Millisecond),
				Message: fmt.Sprintf("namespace %q enqueues more than %g tasks a second", e.namespace, e.quotas.EnqueuePerSecond)}
		}
		got, err := e.store.Reserve(ctx, []store.Reservation{{Key: rateKey(e.namespace), Rate: rate, N: reserve}})
		if err != nil {
			return problem.FromStore(err)
		}
		e.tenant.Tokens.Add(time.Now(), got[0])
	}
}

// rateKey is where the store keeps the rate of a namespace. No topic has that name.
func rateKey(namespace string) store.LimitKey { return store.LimitKey{Topic: namespace + "/"} }

// Leave counts the tasks out, once they are answered or nobody waits for that.
func (e *Entry) Leave() {
	if e != nil && e.pending > 0 {
		e.tenant.Backlog.Leave(e.pending)
	}
}

func overQuota(pause time.Duration, format string, args ...any) *problem.Error {
	return &problem.Error{Kind: problem.Exhausted, Reason: "QUOTA", RetryAfter: pause, Message: fmt.Sprintf(format, args...)}
}
