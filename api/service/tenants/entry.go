package tenants

import (
	"context"
	"fmt"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/service/intake"
	"github.com/ddq-io/ddq/api/service/scope"
	"github.com/ddq-io/ddq/store"
)

// Enter returns what the tasks of a request pass on their way into the namespace of the call; nil where it has
// no quotas.
func (s *Tenants) Enter(ctx context.Context, n int) *Entry {
	namespace := scope.Of(ctx)
	q := s.quotasOf(namespace)
	if q == nil {
		return nil
	}
	return &Entry{Tenants: s, tenant: s.of(namespace), namespace: namespace, quotas: q, left: n}
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
	n := int64(len(t.Payload))
	if err := e.fits(n); err != nil {
		return err
	}
	if err := e.room(ctx); err != nil {
		return err
	}
	if err := e.turn(ctx); err != nil {
		return err
	}
	if err := e.bytes(ctx, n); err != nil {
		if e.quotas.EnqueuePerSecond > 0 {
			e.tenant.Tokens.Back()
		}
		return err
	}
	return nil
}

// fits says that a payload is one that can ever pass.
func (e *Entry) fits(n int64) *problem.Error {
	if most := e.quotas.MaxPayloadBytes; most > 0 && n > most {
		e.node.Metrics().CountOverQuota(e.namespace, "max_payload_bytes")
		return problem.BadField("payload", "PAYLOAD_TOO_LARGE", "payload has %d bytes; at most %d are allowed", n, most)
	}
	if most := e.quotas.BytesPerSecond; most > 0 && n > most {
		e.node.Metrics().CountOverQuota(e.namespace, "bytes_per_second")
		return problem.BadField("payload", "PAYLOAD_TOO_LARGE", "payload has %d bytes; namespace %q may enqueue %d in a second", n, e.namespace, most)
	}
	return nil
}

// room says that as many tasks wait in the namespace as may.
func (e *Entry) room(ctx context.Context) *problem.Error {
	most := int(min(e.quotas.MaxPending, actors.MaxTasks))
	if most == 0 {
		return nil
	}
	switch in, err := e.take(ctx, &e.tenant.Backlog, most, e.waiting); {
	case err != nil:
		return err
	case !in:
		return e.overQuota(e.namespace, "max_pending", problem.RetrySoon, "%d tasks waiting", most)
	}
	e.pending++
	return nil
}

// waiting asks the store how many tasks wait in the namespace.
func (e *Entry) waiting(ctx context.Context) (n int64, err error) {
	shards, err := e.shards(ctx, e.namespace)
	if err != nil {
		return 0, err
	}
	stats, err := e.node.CountsOf(ctx, shards)
	for i := range stats {
		n += stats[i].Pending
	}
	return n, err
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
			return e.tooFast("enqueue_per_second", wait, "%g tasks", e.quotas.EnqueuePerSecond)
		}
		got, err := e.store.Reserve(ctx, []store.Reservation{{Key: limitKey(e.namespace, ""), Rate: rate, N: reserve}})
		if err != nil {
			return problem.FromStore(err)
		}
		e.tenant.Tokens.Add(time.Now(), got[0])
	}
}

// bytes takes those of a payload of the rate of the namespace.
func (e *Entry) bytes(ctx context.Context, n int64) *problem.Error {
	if e.quotas.BytesPerSecond == 0 {
		return nil
	}
	rate := intake.NewByteRate(e.quotas.BytesPerSecond)
	for {
		taken, ask, least, wait := e.tenant.Bytes.Take(time.Now(), rate, n)
		switch {
		case taken:
			return nil
		case ask == 0:
			return e.tooFast("bytes_per_second", wait, "%d bytes", e.quotas.BytesPerSecond)
		}
		for ask > 0 {
			got, err := e.store.Reserve(ctx, []store.Reservation{{Key: limitKey(e.namespace, "bytes"), Rate: rate.Rate, N: ask, Whole: true}})
			if err != nil {
				return problem.FromStore(err)
			}
			ask = e.tenant.Bytes.Add(time.Now(), rate, ask, least, got[0])
		}
	}
}

// tooFast counts that a rate is used up, and says when it is not any more.
func (e *Entry) tooFast(quota string, wait time.Duration, format string, most any) *problem.Error {
	e.node.Metrics().CountOverQuota(e.namespace, quota)
	return &problem.Error{Kind: problem.Exhausted, Reason: "RATE_LIMITED", RetryAfter: max(wait, time.Millisecond),
		Message: fmt.Sprintf("namespace %q enqueues more than "+format+" a second", e.namespace, most)}
}

// Leave counts the tasks out, once they are answered or nobody waits for that.
func (e *Entry) Leave() {
	if e != nil && e.pending > 0 {
		e.tenant.Backlog.Leave(e.pending)
	}
}
