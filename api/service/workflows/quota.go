package workflows

import (
	"context"
	"fmt"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/api/service/quota"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// quotaShare is how many times as long as it took a count of open workflows is gone by.
const quotaShare = 50

// OpenList is that of the workflows of a shard that have not ended.
const OpenList = workflow.OpenList

// takeRoom counts one more open workflow of a topic, or refuses it.
func (s *Workflows) takeRoom(ctx context.Context, topic *store.Topic) *problem.Error {
	_, allowed := Policy(topic)
	most := int64(allowed)
	there, room, err := s.quota.Take(ctx, topic, 1, most, func(ctx context.Context) (int64, error) {
		return quota.Listed(ctx, s.node, s.node.Cells(), place.Shards(topic), workflow.OpenList, most)
	})
	switch {
	case err != nil:
		return problem.FromStore(err)
	case !room:
		return &problem.Error{Kind: problem.Exhausted, Reason: "TOO_MANY_WORKFLOWS", Field: "topic", RetryAfter: quota.Fresh,
			Message: fmt.Sprintf("topic %q has %d open workflows; at most %d are allowed", topic.Name, there, most)}
	}
	return nil
}
