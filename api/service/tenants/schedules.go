package tenants

import (
	"context"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/service/quota"
	"github.com/ddq-io/ddq/store"
)

// AdmitSchedule lets a schedule be created in a topic where the namespace has room. list is that of the schedules of
// a shard. leave is called once the schedule is there, or is not going to be.
func (s *Tenants) AdmitSchedule(ctx context.Context, topic, list string) (leave func(), err *problem.Error) {
	namespace, _ := store.SplitName(topic)
	q := s.quotasOf(namespace)
	if q == nil || q.MaxSchedules == 0 {
		return func() {}, nil
	}
	most, tenant := int(min(q.MaxSchedules, actors.MaxTasks)), s.of(namespace)
	in, err := s.take(ctx, &tenant.Schedules, most, func(ctx context.Context) (int64, error) {
		shards, err := s.shards(ctx, namespace)
		if err != nil {
			return 0, err
		}
		return quota.Listed(ctx, s.node, s.node.Cells(), shards, list, int64(most))
	})
	switch {
	case err != nil:
		return nil, err
	case !in:
		return nil, s.overQuota(namespace, "max_schedules", slowPause, "%d schedules", most)
	}
	return func() { tenant.Schedules.Leave(1) }, nil
}
