package topics

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// Counts of what is due soon cost a walk through it in the embedded store. The page of a topic waits for
// each of them for countPatience; a topic of which more is due than that allows is left alone for
// countAgain, however many look.
const (
	countPatience = 200 * time.Millisecond
	countAgain    = 30 * time.Second
	maxCrowded    = 1000
)

// crowded are the topics of which too much is due soon.
type crowded struct {
	mu    sync.Mutex
	until map[string]time.Time // guarded by mu
}

func newCrowded() *crowded { return &crowded{until: make(map[string]time.Time)} }

func (c *crowded) has(topic string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return now.Before(c.until[topic])
}

func (c *crowded) add(topic string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.until) >= maxCrowded {
		clear(c.until)
	}
	c.until[topic] = now.Add(countAgain)
}

// due are the columns of a topic's pending tasks from a time on; nil when too much is due.
func (s *section) due(ctx context.Context, topic, title string, from time.Time, bucket time.Duration, n int32) (*frame.Columns, error) {
	if s.crowded.has(topic, time.Now()) {
		return nil, nil
	}
	short, cancel := context.WithTimeout(ctx, countPatience)
	defer cancel()
	r, err := s.queue.DueHistogram(short, &ddqv1.DueHistogramRequest{Topic: topic, StartUnixMs: from.UnixMilli(), BucketMs: bucket.Milliseconds(), Buckets: n})
	switch {
	case err != nil && short.Err() != nil && ctx.Err() == nil, status.Code(err) == codes.DeadlineExceeded:
		s.crowded.add(topic, time.Now())
		return nil, nil
	case err != nil:
		return nil, err
	}
	c := frame.NewColumns(title, time.UnixMilli(r.GetStartUnixMs()), bucket, r.GetCounts())
	c.Before, c.After = r.GetBefore(), r.GetAfter()
	return c, nil
}
