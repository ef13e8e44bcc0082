package service

import (
	"context"
	"slices"
	"strings"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// ListDead pages through the dead letters that the filter matches.
func (s *Service) ListDead(ctx context.Context, topic string, f DeadFilter, size int, token string) (tasks []Found, next string, err error) {
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
func (s *Service) RequeueDead(ctx context.Context, topic string, ids []string, f DeadFilter) (n int64, missing []string, err error) {
	return s.eachDead(ctx, topic, ids, f, func(ref *actors.Topic, shard store.Shard, ids []string) ([]store.Status, error) {
		stamp, results, err := s.node.Store().Requeue(ctx, shard, ids)
		statuses := make([]store.Status, len(results))
		for i, r := range results {
			switch statuses[i] = r.Status; r.Status {
			case store.OK:
				given, err := s.givenAnew(ctx, ref, shard, ids[i])
				if err != nil {
					return nil, err
				}
				if given {
					statuses[i] = store.NotFound
					continue
				}
				ref.Pending(shard.N, stamp.Seq, store.Entry{ID: ids[i], Due: r.Due, Traits: r.Traits})
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
func (s *Service) DeleteDead(ctx context.Context, topic string, ids []string, f DeadFilter) (n int64, missing []string, err error) {
	return s.eachDead(ctx, topic, ids, f, func(_ *actors.Topic, shard store.Shard, ids []string) ([]store.Status, error) {
		_, results, err := s.node.Store().RemoveDead(ctx, shard, ids)
		return results, err
	})
}

type deadAction func(ref *actors.Topic, shard store.Shard, ids []string) ([]store.Status, error)

func (s *Service) eachDead(ctx context.Context, topic string, ids []string, f DeadFilter, act deadAction) (n int64, missing []string, err error) {
	l := s.limits
	if len(ids) > l.BatchTasks {
		return 0, nil, problem.BadField("ids", "BATCH_SIZE", "%d ids; at most %d are allowed", len(ids), l.BatchTasks)
	}
	for _, id := range ids {
		if err := l.checkID(id); err != nil {
			err.Field = "ids"
			return 0, nil, err
		}
	}
	ref, e := s.node.Topic(ctx, topic, false)
	if e != nil {
		return 0, nil, e
	}
	if len(ids) > 0 {
		return actOn(ref, ids, act)
	}
	n, err = s.actOnMatches(ctx, ref, f, act)
	return n, nil, err
}

func actOn(ref *actors.Topic, ids []string, act deadAction) (n int64, missing []string, err error) {
	t := ref.Config()
	missing = ids
	for _, span := range t.Spans() {
		ids, missing = missing, nil
		for shard, at := range actors.GroupByShard(len(ids), span.Shards, func(i int) int { return place.ShardOf(ids[i], span.Shards) }) {
			if len(at) == 0 {
				continue
			}
			own := make([]string, len(at))
			for k, i := range at {
				own[k] = ids[i]
			}
			results, err := act(ref, store.Shard{Topic: t.Name, N: span.First + shard}, own)
			if err != nil {
				return n, missing, problem.AsError(err)
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
func (s *Service) actOnMatches(ctx context.Context, ref *actors.Topic, f DeadFilter, act deadAction) (n int64, err error) {
	for _, shard := range place.Shards(ref.Config()) {
		ids, err := s.matchingDead(ctx, shard, f)
		if err != nil {
			return n, problem.AsError(err)
		}
		for batch := range slices.Chunk(ids, store.BatchItems) {
			results, err := act(ref, shard, batch)
			if err != nil {
				return n, problem.AsError(err)
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

func (s *Service) matchingDead(ctx context.Context, shard store.Shard, f DeadFilter) (ids []string, err error) {
	for cursor := ""; ; {
		var page []store.Snapshot
		if page, cursor, err = s.node.Store().List(ctx, shard, store.KindDead, cursor, store.BatchItems); err != nil {
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

// DeadFilter narrows down dead letters; zero fields match everything.
type DeadFilter struct {
	Reason        store.Reason
	ErrorContains string
	After, Before store.Millis
}
