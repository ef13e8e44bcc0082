package upkeep

import (
	"context"
	"errors"
	"time"

	"github.com/ddq-io/ddq/actors/metrics"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

const (
	trimPage  = 1000
	tendEvery = 4 // chores: then all shards of the node are tended, else those in use
)

// Chores are what a node does now and then for the shards that it should own: what
// nobody needs any more is deleted there, and what is left is counted.
func (s *Upkeep) Chores(ctx context.Context) {
	s.node.Clocks().WatchSpread()
	s.node.Meter().ForgetIdle()
	topics, err := s.store.ListTopics(ctx)
	used := s.inUse(topics)
	if s.chores++; s.chores%tendEvery == 1 {
		used = topics
	}
	if s.chores%receiptsEvery == 1 {
		s.receipts.look(topics)
	}
	err = errors.Join(err, s.tend(ctx, used))
	for i := range topics {
		t := &topics[i]
		err = errors.Join(err, s.trim(ctx, t), s.tendLogs(ctx, t))
		if place.Resharding(t) {
			err = errors.Join(err, s.retire(ctx, *t))
		}
	}
	if s.node.Membership().Alone() { // else discover has the numbers, and opens topics
		err = errors.Join(err, s.node.Topics().OpenActive(ctx), s.countQueued(ctx))
	}
	s.noteIncomplete(ctx, err)
}

// inUse are those of the topics that were used here lately, or have changed since it was last
// called.
func (s *Upkeep) inUse(topics []store.Topic) (used []store.Topic) {
	since := time.Now().Add(-2 * ChoresEvery).UnixNano()
	versions := make(map[string]int64, len(topics))
	for i := range topics {
		t := &topics[i]
		versions[t.Name] = t.Version
		ref, open := s.node.Topics().Opened(t.Name)
		if open && ref.LastUsed() >= since || s.versions[t.Name] != t.Version {
			used = append(used, *t)
		}
	}
	s.versions = versions
	return used
}

// trim deletes dead letters of a topic that are kept no longer.
func (s *Upkeep) trim(ctx context.Context, t *store.Topic) error {
	if t.DeadRetention == 0 && t.MaxDead == 0 {
		return nil
	}
	var err error
	for _, shard := range place.Shards(t) {
		if t.DeadRetention > 0 && s.node.Membership().Owns(shard) {
			err = errors.Join(err, s.trimDead(ctx, shard, t))
		}
	}
	if t.MaxDead > 0 && s.node.Membership().Owns(store.Shard{Topic: t.Name, N: t.First}) {
		err = errors.Join(err, s.CapDead(ctx, t))
	}
	return err
}

// tend does what the counts of this node's shards call for: done tasks whose retention
// has passed are deleted, also those of a topic that keeps none any more, free idempotency
// keys are forgotten, logs that nobody keeps any more end, and indexes are made what the
// topics say.
func (s *Upkeep) tend(ctx context.Context, topics []store.Topic) error {
	var ours []store.Shard
	var of []*store.Topic
	for i := range topics {
		for _, shard := range place.Shards(&topics[i]) {
			if s.node.Membership().Owns(shard) {
				ours, of = append(ours, shard), append(of, &topics[i])
			}
		}
	}
	stats, err := s.node.CountsOf(ctx, ours)
	for i := range stats {
		if stats[i].Logged && of[i].Watch.Retention == 0 { // whoever ended that did not come to it
			err = errors.Join(err, s.node.Topics().KeepLogs(ctx, ours[i:i+1], store.Watching{}))
		}
		if stats[i].Cells > 0 && s.chores%receiptsEvery == 1 {
			err = errors.Join(err, s.receipts.forget(ctx, s.node.Cells(), ours[i]))
		}
		s.noteIndex(of[i], ours[i], &stats[i])
		if stats[i].Done > 0 {
			err = errors.Join(err, s.trimDone(ctx, ours[i]))
		}
		for n := trimPage; stats[i].Keys && n == trimPage && err == nil; {
			n, err = s.store.TrimKeys(ctx, ours[i], trimPage)
		}
	}
	return err
}

func (s *Upkeep) trimDone(ctx context.Context, shard store.Shard) error {
	for {
		n, err := s.store.Trim(ctx, shard, trimPage)
		if err != nil || n < trimPage {
			return err
		}
	}
}

// trimDead deletes dead letters whose retention has passed.
func (s *Upkeep) trimDead(ctx context.Context, shard store.Shard, t *store.Topic) error {
	kept := store.Millis(s.node.Clock().Now().UnixMilli()).Add(-t.DeadRetention)
	for {
		n, err := s.store.TrimDead(ctx, shard, store.Entry{Due: kept}, trimPage)
		s.node.Metrics().CountTrimmed(metrics.TrimmedOld, n)
		if err != nil || n < trimPage {
			return err
		}
	}
}

// CapDead deletes the oldest dead letters of a topic that has too many. One node does
// it for all shards. Should two believe that it is for them to do, none deletes too
// many: they go by positions, and count after they have looked, so whoever comes later
// finds either the same ones or nothing to do.
func (s *Upkeep) CapDead(ctx context.Context, t *store.Topic) error {
	total := 0
	over := excess{node: s.node, store: s.store, topic: t}
	n, err := over.deletePage(ctx)
	for ; n > 0 && err == nil; n, err = over.deletePage(ctx) {
		total += n
	}
	if total += n; total > 0 {
		s.node.Log().Warn("more dead letters than max_dead: the oldest were deleted", "topic", t.Name, "deleted", total)
	}
	return err
}
