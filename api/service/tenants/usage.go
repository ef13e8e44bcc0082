package tenants

import (
	"context"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/service/quota"
	"github.com/ddq-io/ddq/api/service/scope"
	"github.com/ddq-io/ddq/store"
)

// MostCounted is how many schedules are counted of a namespace, which reads them.
const MostCounted = 10_000

// Usage is what a namespace has of what quotas bound, over all nodes.
type Usage struct {
	Pending   int64  // tasks that wait or are ready
	InFlight  int64  // tasks that workers hold
	Topics    int64  //
	Schedules *int64 // MostCounted: it has so many, or more; nil: it has no quota of them
	Streams   *int64 // of workers; nil: it has no quota of them, and nobody counts them
}

// Usage counts what the namespace of a call has. list is that of the schedules of a shard. It reads no task.
func (s *Tenants) Usage(ctx context.Context, list string) (u Usage, err error) {
	namespace := scope.Of(ctx)
	topics, err := s.topics(ctx, namespace)
	if err != nil {
		return u, problem.FromStore(err)
	}
	shards := shardsOf(topics)
	stats, err := s.node.CountsOf(ctx, shards)
	if err != nil {
		return u, problem.FromStore(err)
	}
	u.Topics = int64(len(topics))
	var withCells []store.Shard
	for i := range stats {
		u.Pending += stats[i].Pending
		u.InFlight += stats[i].Running
		if stats[i].Cells > 0 {
			withCells = append(withCells, shards[i])
		}
	}
	q := s.quotasOf(namespace)
	if q != nil && q.MaxSchedules > 0 {
		n, err := quota.Count(ctx, s.node.Cells(), withCells, list, MostCounted)
		if err != nil {
			return u, problem.FromStore(err)
		}
		u.Schedules = &n
	}
	if q != nil && q.MaxStreams > 0 {
		n, err := s.openStreams(ctx, namespace, int(q.MaxStreams))
		if err != nil {
			return u, problem.FromStore(err)
		}
		u.Streams = &n
	}
	return u, nil
}

// openStreams asks the store how many worker streams of a namespace are open, of the most that may.
func (s *Tenants) openStreams(ctx context.Context, namespace string, most int) (int64, error) {
	got, err := s.store.Acquire(ctx, []store.Acquire{{Key: streamsKey(namespace), Max: most}})
	if err != nil {
		return 0, err
	}
	return int64(got[0].InUse), nil
}
