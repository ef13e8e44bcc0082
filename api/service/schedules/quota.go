package schedules

import (
	"cmp"
	"context"
	"fmt"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/api/service/quota"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// quotaShare is how many times as long as it took a count of schedules is gone by.
const quotaShare = 50

// defaultMax is how many schedules a topic may have that does not say.
const defaultMax = 1_000_000

// List is that of the schedules of a shard.
const List = schedule.List

// MaxOf is how many schedules a topic may have.
func MaxOf(t *store.Topic) int { return cmp.Or(t.MaxSchedules, defaultMax) }

// CheckPolicy refuses what no topic may say of its schedules.
func CheckPolicy(t *store.Topic) *problem.Error {
	return problem.FirstInvalid([]problem.Bound{problem.Count("policy.max_schedules", "max-schedules", t.MaxSchedules, 0, actors.MaxTasks)})
}

// takeRoom counts one more schedule of a topic, or refuses it.
func (s *Schedules) takeRoom(ctx context.Context, topic *store.Topic) *problem.Error {
	most := int64(MaxOf(topic))
	there, room, err := s.quota.Take(ctx, topic, 1, most, func(ctx context.Context) (int64, error) {
		return quota.Listed(ctx, s.node, s.cells, place.Shards(topic), schedule.List, most)
	})
	switch {
	case err != nil:
		return problem.FromStore(err)
	case !room:
		return &problem.Error{Kind: problem.Exhausted, Reason: "TOO_MANY_SCHEDULES", Field: "topic", RetryAfter: quota.Fresh,
			Message: fmt.Sprintf("topic %q has %d schedules; at most %d are allowed", topic.Name, there, most)}
	}
	return nil
}
