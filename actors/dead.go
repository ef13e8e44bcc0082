package actors

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ddq-io/ddq/store"
)

// ListDead pages through the dead letters that the filter matches.
func (s *System) ListDead(ctx context.Context, topic string, f DeadFilter, size int, token string) (tasks []Found, next string, err error) {
	return s.page(ctx, topic, []store.Kind{store.KindDead}, size, token, f.matches)
}

func (f DeadFilter) matches(t *store.Snapshot) bool {
	return (f.Reason == store.ReasonNone || f.Reason == t.Reason) &&
		(f.ErrorContains == "" || strings.Contains(t.LastError, f.ErrorContains)) &&
		(f.After == 0 || t.Finished >= f.After) &&
		(f.Before == 0 || t.Finished < f.Before)
}

// RequeueDead makes dead letters due now with fresh attempts: ids, or with none
// what the filter matches. missing are those of ids that are no dead letters.
func (s *System) RequeueDead(ctx context.Context, topic string, ids []string, f DeadFilter) (n int64, missing []string, err error) {
	return s.eachDead(ctx, topic, ids, f, func(ref *topicRef, shard store.Shard, ids []string) ([]store.Status, error) {
		stamp, results, err := s.store.Requeue(ctx, shard, ids)
		statuses := make([]store.Status, len(results))
		for i, r := range results {
			switch statuses[i] = r.Status; r.Status {
			case store.OK:
				s.tell(ref, shard.N, &pendingChanged{
					task: store.Entry{ID: ids[i], Due: r.Due, Traits: r.Traits},
					seq:  stamp.Seq,
				})
			case store.Closed:
				if statuses[i], err = s.moveDead(ctx, ref, shard, ids[i]); err != nil {
					return nil, err
				}
			}
		}
		return statuses, err
	})
}

// DeleteDead deletes dead letters like RequeueDead requeues them.
func (s *System) DeleteDead(ctx context.Context, topic string, ids []string, f DeadFilter) (n int64, missing []string, err error) {
	return s.eachDead(ctx, topic, ids, f, func(_ *topicRef, shard store.Shard, ids []string) ([]store.Status, error) {
		_, results, err := s.store.RemoveDead(ctx, shard, ids)
		return results, err
	})
}

type deadAction func(ref *topicRef, shard store.Shard, ids []string) ([]store.Status, error)

func (s *System) eachDead(ctx context.Context, topic string, ids []string, f DeadFilter, act deadAction) (n int64, missing []string, err error) {
	l := &s.cfg.Limits
	if len(ids) > l.BatchTasks {
		return 0, nil, invalid("ids", "BATCH_SIZE", "%d ids; at most %d are allowed", len(ids), l.BatchTasks)
	}
	for _, id := range ids {
		if err := l.checkID(id); err != nil {
			err.Field = "ids"
			return 0, nil, err
		}
	}
	ref, e := s.topic(ctx, topic, false)
	if e != nil {
		return 0, nil, e
	}
	if len(ids) > 0 {
		return actOn(ref, ids, act)
	}
	n, err = s.actOnMatches(ctx, ref, f, act)
	return n, nil, err
}

func actOn(ref *topicRef, ids []string, act deadAction) (n int64, missing []string, err error) {
	t := ref.config.Load()
	missing = ids
	for _, span := range t.Spans() {
		ids, missing = missing, nil
		for shard, at := range groupByShard(len(ids), span.Shards, func(i int) int { return shardOf(ids[i], span.Shards) }) {
			if len(at) == 0 {
				continue
			}
			own := make([]string, len(at))
			for k, i := range at {
				own[k] = ids[i]
			}
			results, err := act(ref, store.Shard{Topic: t.Name, N: span.First + shard}, own)
			if err != nil {
				return n, missing, failure(err)
			}
			for k, r := range results {
				if r == store.OK {
					n++
				} else {
					missing = append(missing, own[k])
				}
			}
		}
	}
	return n, missing, nil
}

// actOnMatches reads all matches of a shard before it acts on any, since acting
// moves them.
func (s *System) actOnMatches(ctx context.Context, ref *topicRef, f DeadFilter, act deadAction) (n int64, err error) {
	for _, shard := range shardsOf(ref.config.Load()) {
		ids, err := s.matchingDead(ctx, shard, f)
		if err != nil {
			return n, failure(err)
		}
		for batch := range slices.Chunk(ids, batchItems) {
			results, err := act(ref, shard, batch)
			if err != nil {
				return n, failure(err)
			}
			for _, r := range results {
				if r == store.OK {
					n++
				}
			}
		}
	}
	return n, nil
}

func (s *System) matchingDead(ctx context.Context, shard store.Shard, f DeadFilter) (ids []string, err error) {
	for cursor := ""; ; {
		var page []store.Snapshot
		if page, cursor, err = s.store.List(ctx, shard, store.KindDead, cursor, batchItems); err != nil {
			return nil, err
		}
		for i := range page {
			if f.matches(&page[i]) {
				ids = append(ids, page[i].ID)
			}
		}
		if cursor == "" {
			return ids, nil
		}
	}
}

// refresh is the housekeeping of a node, in a few goroutines between start and stop.
type refresh struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

const (
	followEvery = time.Second      // see followTopics
	choresEvery = 15 * time.Second // see chores
)
