package schedules

import (
	"context"
	"fmt"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/service/quota"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// takeRoom counts one more schedule of a topic, or refuses it.
func takeRoom(ctx context.Context, q *quota.Quota, node *actors.Node, topic *store.Topic, most int) *problem.Error {
	there, room, err := q.Take(ctx, topic, 1, int64(most), func(ctx context.Context) (cells int64, err error) {
		stats, err := node.CountsOf(ctx, place.Shards(topic))
		for i := range stats {
			cells += stats[i].Cells
		}
		return cells, err
	})
	switch {
	case err != nil:
		return problem.FromStore(err)
	case !room:
		return &problem.Error{Kind: problem.Exhausted, Reason: "TOO_MANY_SCHEDULES", Field: "topic",
			Message: fmt.Sprintf("topic %q has %d schedules; at most %d are allowed", topic.Name, there, most)}
	}
	return nil
}
