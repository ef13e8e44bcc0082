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

// takeRoom counts one more open workflow of a topic, or refuses it.
func (s *Workflows) takeRoom(ctx context.Context, topic *store.Topic) *problem.Error {
	_, allowed := Policy(topic)
	most := int64(allowed)
	there, room, err := s.quota.Take(ctx, topic, 1, most, func(ctx context.Context) (int64, error) { return s.count(ctx, topic, most) })
	switch {
	case err != nil:
		return problem.FromStore(err)
	case !room:
		return &problem.Error{Kind: problem.Exhausted, Reason: "TOO_MANY_WORKFLOWS", Field: "topic", RetryAfter: quota.Fresh,
			Message: fmt.Sprintf("topic %q has %d open workflows; at most %d are allowed", topic.Name, there, most)}
	}
	return nil
}

// countPage is how many workflows one read counts.
const countPage = 1000

// count returns how many workflows of a topic are open, or most if there are more. Where the topic
// has fewer cells there are fewer workflows, and none is read.
func (s *Workflows) count(ctx context.Context, topic *store.Topic, most int64) (int64, error) {
	shards := place.Shards(topic)
	stats, err := s.node.CountsOf(ctx, shards)
	if err != nil {
		return 0, err
	}
	cells := int64(0)
	for i := range stats {
		cells += stats[i].Cells
	}
	if cells < most {
		return cells, nil
	}
	open := int64(0)
	for _, shard := range shards {
		for after := (store.Wake{}); open < most; {
			page, err := s.node.Cells().Listed(ctx, shard, workflow.OpenList, after, countPage)
			if err != nil {
				return 0, err
			}
			if len(page) == 0 {
				break
			}
			last := &page[len(page)-1]
			open, after = open+int64(len(page)), store.Wake{At: last.Listed, ID: last.ID}
		}
	}
	return min(open, most), nil
}
