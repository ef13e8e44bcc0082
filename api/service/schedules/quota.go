package schedules

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// quota bounds how many schedules a topic has. It counts those of a topic now and
// then, and between that what this node adds.
type quota struct {
	mu     sync.Mutex
	topics map[string]*quotaCount // guarded by mu
}

type quotaCount struct {
	seen int64
	at   time.Time
}

// quotaFresh is how long a count is gone by.
const quotaFresh = 10 * time.Second

// take counts one more schedule, or refuses it.
func (q *quota) take(ctx context.Context, node *actors.Node, topic *store.Topic, most int) *problem.Error {
	key := string(binary.BigEndian.AppendUint64([]byte(topic.Name), topic.Life))
	if q.takeKnown(key, most) {
		return nil
	}
	stats, err := node.CountsOf(ctx, place.Shards(topic))
	if err != nil {
		return problem.FromStore(err)
	}
	there := int64(0)
	for i := range stats {
		there += stats[i].Cells
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.topics == nil {
		q.topics = make(map[string]*quotaCount)
	}
	q.topics[key] = &quotaCount{seen: there + 1, at: time.Now()}
	if there >= int64(most) {
		return &problem.Error{Kind: problem.Exhausted, Reason: "TOO_MANY_SCHEDULES", Field: "topic",
			Message: fmt.Sprintf("topic %q has %d schedules; at most %d are allowed", topic.Name, there, most)}
	}
	return nil
}

// takeKnown counts one more by a count that is fresh, if that leaves room for it.
func (q *quota) takeKnown(key string, most int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	count := q.topics[key]
	if count == nil || time.Since(count.at) >= quotaFresh || count.seen >= int64(most) {
		return false
	}
	count.seen++
	return true
}
