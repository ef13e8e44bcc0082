package service

import (
	"context"
	"slices"
	"strings"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/service/steps"
	"github.com/ddq-io/ddq/api/service/undeliverable"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// DeadLetters is what is done with the dead letters of a topic.
type DeadLetters struct {
	node   *actors.Node
	store  taskStore
	limits *limits
	look   *lookup
	unsent *undeliverable.Tasks
	steps  *steps.Steps
}

// List pages through the dead letters that the filter matches.
func (s *DeadLetters) List(ctx context.Context, topic string, f DeadFilter, size int, token string) (tasks []Found, next string, err error) {
	return s.look.walk(ctx, topic, []store.Kind{store.KindDead}, size, token, f.matches,
		func(ctx context.Context, _ *store.Topic, shard store.Shard, _ store.Kind, cursor string, limit int) ([]store.Snapshot, string, error) {
			return s.page(ctx, shard, cursor, limit)
		})
}

// page returns dead letters of a shard, the undeliverable ones first, and the cursor of the next page.
func (s *DeadLetters) page(ctx context.Context, shard store.Shard, cursor string, limit int) ([]store.Snapshot, string, error) {
	return s.unsent.List(ctx, shard, cursor, limit, func(cursor string, limit int) ([]store.Snapshot, string, error) {
		return s.store.List(ctx, shard, store.KindDead, cursor, limit)
	})
}

func (f DeadFilter) matches(t *store.Snapshot) bool {
	return (f.Reason == store.ReasonNone || f.Reason == t.Reason) &&
		(f.ErrorContains == "" || strings.Contains(t.LastError, f.ErrorContains)) &&
		(f.After == 0 || t.Finished >= f.After) &&
		(f.Before == 0 || t.Finished < f.Before)
}

// Requeued is what came of a requeue.
type Requeued struct {
	Count   int64
	Missing []string // of ids: no dead letters
	Skipped int64    // by filter: tasks of workflows, which stay
}

// Requeue makes dead letters due now with fresh attempts: ids, or with none what the filter
// matches. Those of steps are their workflow's to retry: among ids they are refused.
func (s *DeadLetters) Requeue(ctx context.Context, topic string, ids []string, f DeadFilter, at Pace) (done Requeued, err error) {
	ref, e := s.open(ctx, topic, ids)
	if e != nil {
		return done, e
	}
	if e := s.steps.Refuse(ctx, ref.Config(), "RetryWorkflow", ids...); e != nil {
		e.Field = "ids"
		return done, e
	}
	keep := func(shard store.Shard, ids []string) ([]string, *problem.Error) {
		left, err := s.steps.Without(ctx, shard, ids)
		done.Skipped += int64(len(ids) - len(left))
		return left, err
	}
	done.Count, done.Missing, err = s.each(ctx, ref, deadTargets{ids, f, keep, at}, undeliverable.Again, func(ref *actors.Topic, shard store.Shard, ids []string) ([]store.Status, error) {
		stamp, results, err := s.store.Requeue(ctx, shard, ids)
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
				if statuses[i], err = s.move(ctx, ref, shard, ids[i]); err != nil {
					return nil, err
				}
			}
		}
		return statuses, err
	})
	return done, err
}

// Delete deletes dead letters like Requeue requeues them.
func (s *DeadLetters) Delete(ctx context.Context, topic string, ids []string, f DeadFilter, at Pace) (n int64, missing []string, err error) {
	ref, e := s.open(ctx, topic, ids)
	if e != nil {
		return 0, nil, e
	}
	all := func(_ store.Shard, ids []string) ([]string, *problem.Error) { return ids, nil }
	return s.each(ctx, ref, deadTargets{ids, f, all, at}, undeliverable.Forget, func(_ *actors.Topic, shard store.Shard, ids []string) ([]store.Status, error) {
		_, results, err := s.store.RemoveDead(ctx, shard, ids)
		return results, err
	})
}

// Pace says how far apart the parts are of a change of what a filter matches. The zero Pace does it at once.
type Pace struct {
	Batch  int                  // dead letters that are changed before Report is called; 0: as many as a store call takes
	Report func(Progress) error // the first error of it is the end; nil: nobody is told
}

// deadTargets are the dead letters that are meant: ids, or with none what the filter matches, but for
// those that keep leaves out.
type deadTargets struct {
	ids    []string
	filter DeadFilter
	keep   chosen
	at     Pace
}

type deadAction func(ref *actors.Topic, shard store.Shard, ids []string) ([]store.Status, error)

// chosen leaves out those of the matches in a shard that are not to be acted on.
type chosen func(shard store.Shard, ids []string) ([]string, *problem.Error)

// open checks what dead letters are meant, and opens their topic.
func (s *DeadLetters) open(ctx context.Context, topic string, ids []string) (*actors.Topic, *problem.Error) {
	l := s.limits
	if len(ids) > l.BatchTasks {
		return nil, problem.BadField("ids", "BATCH_SIZE", "%d ids; at most %d are allowed", len(ids), l.BatchTasks)
	}
	for _, id := range ids {
		if err := l.CheckID(id); err != nil {
			err.Field = "ids"
			return nil, err
		}
	}
	return s.asItIs(ctx, topic)
}

// asItIs opens a topic with the shards that it has now: another node may have given it others a moment
// ago, and dead letters may lie there, or steps' tasks that are to be refused.
func (s *DeadLetters) asItIs(ctx context.Context, topic string) (*actors.Topic, *problem.Error) {
	ref, e := s.node.Topics().Open(ctx, topic, false)
	if e != nil {
		return nil, e
	}
	if err := s.node.Topics().Refresh(ctx, topic); err != nil {
		return nil, problem.FromStore(err)
	}
	return ref, nil
}

func (s *DeadLetters) each(ctx context.Context, ref *actors.Topic, meant deadTargets, again undeliverable.Action, act deadAction) (n int64, missing []string, err error) {
	if len(meant.ids) > 0 {
		n, missing, err = actOn(ref, meant.ids, act)
		if err != nil {
			return n, missing, err
		}
		more, missing, err := s.unsent.Act(ctx, ref, missing, again)
		return n + more, missing, err
	}
	if n, err = s.actOnMatches(ctx, ref, &meant, act); err != nil {
		return n, nil, err
	}
	f := &meant.filter
	if f.Reason != store.ReasonNone && f.Reason != store.ReasonUndeliverable {
		return n, nil, nil // none of the undeliverable ones matches: they need not be read
	}
	more, err := s.unsent.ActOnMatches(ctx, ref, f.matches, again)
	return n + more, nil, err
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
func (s *DeadLetters) actOnMatches(ctx context.Context, ref *actors.Topic, meant *deadTargets, act deadAction) (n int64, err error) {
	var p Progress
	for _, shard := range place.Shards(ref.Config()) {
		ids, err := s.matching(ctx, shard, meant.filter)
		if err != nil {
			return n, problem.AsError(err)
		}
		p.Matched += int64(len(ids))
		for matches := range slices.Chunk(ids, batchOf(meant.at.Batch)) {
			batch, e := meant.keep(shard, matches)
			if e != nil {
				return n, e
			}
			results, err := act(ref, shard, batch)
			if err != nil {
				return n, problem.AsError(err)
			}
			for _, r := range results {
				if r == store.OK {
					n++
				}
			}
			p.Skipped += int64(len(matches)) - (n - p.Changed)
			p.Changed = n
			if meant.at.Report == nil {
				continue
			}
			if err := meant.at.Report(p); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

func (s *DeadLetters) matching(ctx context.Context, shard store.Shard, f DeadFilter) (ids []string, err error) {
	for cursor := ""; ; {
		var page []store.Snapshot
		if page, cursor, err = s.store.List(ctx, shard, store.KindDead, cursor, store.BatchItems); err != nil {
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
