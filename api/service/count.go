package service

import (
	"cmp"
	"context"

	"github.com/ddq-io/ddq/actors/metrics"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// Count counts the tasks of a topic by state. Without a filter that is what the store
// keeps count of, which does not tell retrying tasks from scheduled ones.
func (s *Finder) Count(ctx context.Context, topic string, f TaskFilter) (Counts, error) {
	if f.isZero() {
		t, e := s.look.topics(ctx, cmp.Or(topic, "?"))
		if e != nil {
			return Counts{}, e
		}
		depth, err := s.depth(ctx, &t[0])
		return Counts{Depth: depth}, problem.AsError(err)
	}
	var c Counts
	for token := ""; ; {
		page, next, err := s.matching(ctx, topic, f, s.limits.PageSize, token)
		if err != nil {
			return Counts{}, err
		}
		for i := range page {
			c.add(page[i].State)
		}
		if token = next; next == "" {
			return c, nil
		}
	}
}

func (s *Finder) depth(ctx context.Context, t *store.Topic) (d metrics.Depth, err error) {
	stats, err := s.store.Stats(ctx, place.Shards(t))
	return metrics.DepthOf(stats), err
}

// Counts are numbers of tasks by state.
type Counts struct {
	metrics.Depth
	Retrying int64 // 0 when they are among the scheduled ones
}

func (c *Counts) add(state store.State) {
	switch state {
	case store.StateScheduled:
		c.Scheduled++
	case store.StateReady:
		c.Ready++
	case store.StateRetrying:
		c.Retrying++
	case store.StateRunning:
		c.Running++
	case store.StateDone:
		c.Done++
	case store.StateDead, store.StateExpired:
		c.Dead++
	}
}

// Histogram are numbers of pending tasks by due time.
type Histogram struct {
	Start  store.Millis
	Counts []int64
	Before int64 // due before Start
	After  int64 // due after the last of Counts
}

// Pending is how many tasks there are in all.
func (h *Histogram) Pending() int64 {
	n := h.Before + h.After
	for _, count := range h.Counts {
		n += count
	}
	return n
}

const (
	maxBuckets     = 1000
	defaultBuckets = 60
)

// DueHistogram counts pending tasks by due time, in buckets of a width in milliseconds
// from start on, which is now when 0. Each shard is counted at one moment.
func (s *Finder) DueHistogram(ctx context.Context, topic string, start store.Millis, width int64, buckets int) (Histogram, error) {
	buckets = cmp.Or(buckets, defaultBuckets)
	start = cmp.Or(start, s.node.Clock().Millis())
	switch {
	case width < 1 || width > int64(store.MaxDue)/maxBuckets:
		return Histogram{}, problem.BadField("bucket_ms", "OUT_OF_RANGE_FIELD", "bucket_ms must be 1 to %d", int64(store.MaxDue)/maxBuckets)
	case buckets < 1 || buckets > maxBuckets:
		return Histogram{}, problem.BadField("buckets", "OUT_OF_RANGE_FIELD", "buckets must be 0 to %d", maxBuckets)
	case start < 0 || start > store.MaxDue:
		return Histogram{}, problem.BadField("start_unix_ms", "BAD_TIME", "start_unix_ms must be 0 to %d", int64(store.MaxDue))
	}
	t, e := s.look.topics(ctx, cmp.Or(topic, "?"))
	if e != nil {
		return Histogram{}, e
	}
	bounds := make([]store.Millis, buckets+1)
	for i := range bounds {
		bounds[i] = start + store.Millis(width)*store.Millis(i)
	}
	h := Histogram{Start: start, Counts: make([]int64, buckets)}
	for _, shard := range place.Shards(&t[0]) {
		_, counts, err := s.store.Histogram(ctx, shard, bounds)
		if err != nil {
			return Histogram{}, problem.AsError(err)
		}
		h.Before += counts[0]
		h.After += counts[buckets+1]
		for i := range h.Counts {
			h.Counts[i] += counts[i+1]
		}
	}
	return h, nil
}
