package tenants

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/service/quota"
	"github.com/ddq-io/ddq/store"
)

// countShare is how many times as long as it took a count of schedules that left no room is gone by: where there are
// other cells, too, it is a walk.
const countShare = 50

// AdmitSchedule lets a schedule be created in a topic where the namespace has room. list is that of the schedules of
// a shard. leave is called once the schedule is there, or is not going to be.
func (s *Tenants) AdmitSchedule(ctx context.Context, topic, list string) (leave func(), err *problem.Error) {
	namespace, _ := store.SplitName(topic)
	q := s.quotasOf(namespace)
	if q == nil || q.MaxSchedules == 0 {
		return func() {}, nil
	}
	most, tenant := int(min(q.MaxSchedules, actors.MaxTasks)), s.of(namespace)
	var took time.Duration
	in, err := s.take(ctx, &tenant.Schedules, most, func(ctx context.Context) (n int64, err error) {
		began := time.Now()
		n, err = s.schedules(ctx, namespace, list, int64(most))
		took = time.Since(began)
		return n, err
	})
	switch {
	case err != nil:
		return nil, err
	case !in:
		tenant.Schedules.PutOff(time.Now().Add(min(countShare*took, slowPause)))
		return nil, s.overQuota(namespace, "max_schedules", slowPause, "%d schedules", most)
	}
	return func() { tenant.Schedules.Leave(1) }, nil
}

// schedules asks the store how many schedules a namespace has, up to so many.
func (s *Tenants) schedules(ctx context.Context, namespace, list string, most int64) (int64, error) {
	shards, err := s.shards(ctx, namespace)
	if err != nil {
		return 0, err
	}
	return quota.Listed(ctx, s.node, s.node.Cells(), shards, list, most)
}
