package service

import (
	"context"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// How many dead letters a dry run examines at most: of a call, and of an operation, for which nobody waits.
const (
	DryRunCall      = 10_000
	DryRunOperation = 1_000_000
)

// DryRun says how dead letters are counted that would be changed.
type DryRun struct {
	Most    int64                // that are examined
	Requeue bool                 // those of workflows' steps would be skipped
	Report  func(Progress) error // is told after each page; the first error of it is the end; nil: nobody is told
}

// Count counts the dead letters of a topic that the filter matches, and changes nothing.
func (s *DeadLetters) Count(ctx context.Context, topic string, f DeadFilter, run DryRun) (p Progress, err error) {
	ref, e := s.asItIs(ctx, topic)
	if e != nil {
		return p, e
	}
	for _, shard := range place.Shards(ref.Config()) {
		for cursor, more := "", true; more; more = cursor != "" {
			limit := min(run.Most-p.Examined, store.BatchItems)
			if p.Capped = limit == 0; p.Capped {
				return p, nil
			}
			var page []store.Snapshot
			if page, cursor, err = s.page(ctx, shard, cursor, int(limit)); err != nil {
				return p, problem.AsError(err)
			}
			p.Examined += int64(len(page))
			if e := s.countPage(ctx, shard, page, f, run.Requeue, &p); e != nil {
				return p, e
			}
			if run.Report == nil {
				continue
			}
			if err := run.Report(p); err != nil {
				return p, err
			}
		}
	}
	return p, nil
}

// countPage adds what matches of a page of a shard.
func (s *DeadLetters) countPage(ctx context.Context, shard store.Shard, page []store.Snapshot, f DeadFilter, requeue bool, p *Progress) *problem.Error {
	var ids []string
	for i := range page {
		if !f.matches(&page[i]) {
			continue
		}
		p.Matched++
		if requeue && page[i].Reason != store.ReasonUndeliverable {
			ids = append(ids, page[i].ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	left, e := s.steps.Without(ctx, shard, ids)
	p.Skipped += int64(len(ids) - len(left))
	return e
}
