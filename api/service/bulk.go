package service

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/clock"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/service/steps"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// BulkEditor changes many tasks of a topic at once.
type BulkEditor struct {
	node   *actors.Node
	store  taskStore
	limits *limits
	look   *lookup
	reads  *taskReader
	steps  *steps.Steps
}

// Bulk says which tasks of a topic to change at once.
type Bulk struct {
	Topic  string
	Filter TaskFilter // not zero; its states are pending ones
	DryRun bool       // count only
	Max    int64      // tasks that are matched at most; 0: MaxBulk
	Batch  int        // tasks that are changed before progress is told; 0: as many as a store call takes
}

// MaxBulk is the most tasks that one call changes.
const MaxBulk = 1_000_000

// Progress is how far a Bulk is.
type Progress struct {
	Matched, Changed int64
	Skipped          int64 // matched, and not there to be changed when it was their turn, or steps' to be deleted
	Done             bool
	Capped           bool  // Max was reached
	Examined         int64 // of a dry run of dead letters
}

// Shift says when tasks are due: at When, or, with By, from their own due times on;
// and each up to Spread later, by its id.
type Shift struct {
	When   *When
	By     time.Duration
	Spread time.Duration
}

// target is a task that a Bulk matched.
type target struct {
	id      string
	due     store.Millis
	version int64
}

// bulkAct changes some tasks of a shard, and returns how many.
type bulkAct func(ctx context.Context, ref *actors.Topic, shard store.Shard, targets []target) (int64, error)

// Delete deletes the pending tasks that b matches. It tells progress as it goes,
// and ends with the first error of it.
func (s *BulkEditor) Delete(ctx context.Context, b Bulk, progress func(Progress) error) error {
	return s.run(ctx, b, progress, s.deleteTargets)
}

// Reschedule moves the due times of the pending tasks that b matches. A task that
// would be due farther ahead than the topic allows, or past its expiry, is skipped.
func (s *BulkEditor) Reschedule(ctx context.Context, b Bulk, to Shift, progress func(Progress) error) error {
	at, e := s.aim(ctx, b.Topic, &to)
	if e != nil {
		return e
	}
	return s.run(ctx, b, progress, func(ctx context.Context, ref *actors.Topic, shard store.Shard, targets []target) (int64, error) {
		latest := s.node.Clock().Millis().Add(ref.Config().MaxDelay)
		edits := make([]store.Edit, 0, len(targets))
		for _, t := range targets {
			if due := to.of(&t, at); due <= latest {
				edits = append(edits, store.Edit{ID: t.id, IfVersion: t.version, Due: due})
			}
		}
		return s.editTargets(ctx, ref, shard, edits)
	})
}

// aim returns what When is just now; 0 for none.
func (s *BulkEditor) aim(ctx context.Context, topic string, to *Shift) (at store.Millis, e *problem.Error) {
	if to.Spread < 0 {
		return 0, problem.BadField("spread", "BAD_DELAY", "spread must not be negative")
	}
	w := to.When
	if w == nil {
		return 0, nil
	}
	topics, e := s.look.topics(ctx, cmp.Or(topic, "?"))
	if e != nil {
		return 0, e
	}
	if e := w.check(&topics[0], s.node.Clock().Millis()); e != nil {
		return 0, e
	}
	ref, e := s.node.Topics().Open(ctx, cmp.Or(topic, "?"), false)
	if e != nil {
		return 0, e
	}
	if at = w.At; at == 0 {
		at = clock.CeilMillis(ref.Latest().Add(w.Delay))
	}
	return at, nil
}

// Check says why b cannot be, and with to why its tasks cannot be moved there.
func (s *BulkEditor) Check(ctx context.Context, b *Bulk, to *Shift) error {
	if e := s.check(b); e != nil {
		return e
	}
	if to != nil {
		if _, e := s.aim(ctx, b.Topic, to); e != nil {
			return e
		}
	}
	if _, e := s.node.Topics().Open(ctx, cmp.Or(b.Topic, "?"), false); e != nil {
		return e
	}
	return nil
}

// of returns when a task is due; at is the resolved When.
func (m *Shift) of(t *target, at store.Millis) store.Millis {
	due := at
	if m.When == nil {
		due = max(1, t.due.Add(m.By))
	}
	if spread := store.CeilMillis(m.Spread); spread > 0 {
		due += store.Millis(place.HashID(t.id) % uint64(spread+1))
	}
	return due
}

func (s *BulkEditor) check(b *Bulk) *problem.Error {
	if b.Max < 0 || b.Max > MaxBulk {
		return problem.BadField("max_tasks", "OUT_OF_RANGE_FIELD", "max_tasks must be 0 to %d", MaxBulk)
	}
	if b.Filter.isZero() {
		return problem.BadField("filter", "BAD_FILTER", "filter is missing or empty: say which tasks are meant")
	}
	for _, state := range b.Filter.States {
		if !state.Pending() {
			return problem.BadField("filter.states", "BAD_ENUM", "filter.states must be scheduled, ready or retrying")
		}
	}
	return s.limits.checkFilter(&b.Filter)
}

// bulk reads all matches of a shard before it acts on any, since acting moves them.
func (s *BulkEditor) run(ctx context.Context, b Bulk, progress func(Progress) error, act bulkAct) error {
	if err := s.check(&b); err != nil {
		return err
	}
	ref, e := s.node.Topics().Open(ctx, cmp.Or(b.Topic, "?"), false)
	if e != nil {
		return e
	}
	var p Progress
	most := cmp.Or(b.Max, MaxBulk)
	for _, shard := range place.Shards(ref.Config()) {
		targets, err := s.targets(ctx, ref.Config(), shard, &b.Filter, most-p.Matched)
		if err != nil {
			return problem.AsError(err)
		}
		p.Matched += int64(len(targets))
		if b.DryRun {
			targets = nil
		}
		for batch := range slices.Chunk(targets, batchOf(b.Batch)) {
			changed, err := act(ctx, ref, shard, batch)
			if err != nil {
				return problem.AsError(err)
			}
			p.Changed += changed
			p.Skipped += int64(len(batch)) - changed
			if err := progress(p); err != nil {
				return err
			}
		}
		if p.Capped = p.Matched == most; p.Capped {
			break
		}
	}
	p.Done = true
	return progress(p)
}

// batchOf is how many tasks a store call changes, where so many were asked for; 0: any.
func batchOf(asked int) int { return min(cmp.Or(max(0, asked), store.BatchItems), store.BatchItems) }

// targets returns the pending tasks of a shard that match, at most as many.
func (s *BulkEditor) targets(ctx context.Context, t *store.Topic, shard store.Shard, f *TaskFilter, most int64) (targets []target, err error) {
	find := s.reads.byAttributes(t, f, []store.Kind{store.KindPending})
	for cursor := ""; ; {
		var page []store.Snapshot
		if page, cursor, err = find.page(ctx, shard, cursor, findEntries); err != nil {
			return nil, err
		}
		for i := range page {
			if t := &page[i]; f.matches(t) {
				targets = append(targets, target{t.ID, t.Due, t.Version()})
			}
			if int64(len(targets)) == most {
				return targets, nil
			}
		}
		if cursor == "" {
			return targets, nil
		}
	}
}

// deleteTargets deletes tasks that are still as they were seen: an edit may have made them others,
// which the filter does not match. Those of steps stay.
func (s *BulkEditor) deleteTargets(ctx context.Context, ref *actors.Topic, shard store.Shard, targets []target) (n int64, err error) {
	ids := make([]string, len(targets))
	for i, t := range targets {
		ids[i] = t.id
	}
	_, now, err := store.GetAll(ctx, s.store, shard, ids)
	if err != nil {
		return 0, err
	}
	owned, e := s.steps.Owned(ctx, shard.Topic, now)
	if e != nil {
		return 0, e
	}
	removals := make([]store.Removal, 0, len(targets))
	for i, t := range targets {
		if now[i].State.Pending() && !owned[t.id] {
			removals = append(removals, store.Removal{ID: t.id, IfVersion: t.version})
		}
	}
	var stamp store.Stamp
	var results []store.RemoveResult
	repeated, err := s.node.Resolve(ctx, func() (err error) {
		stamp, results, err = s.store.Remove(ctx, shard, removals)
		return err
	})
	if err != nil {
		return 0, err
	}
	ids = ids[:0]
	for i, r := range results {
		if r.Status == store.OK {
			ids = append(ids, removals[i].ID)
		}
	}
	ref.Deleted(shard.N, stamp.Seq, ids...)
	n = int64(len(ids))
	if repeated && n < int64(len(removals)) {
		return n, store.ErrUnknown // the try without an answer may have deleted them
	}
	return n, nil
}

// editTargets makes edits of one shard and tells its owner.
func (s *BulkEditor) editTargets(ctx context.Context, ref *actors.Topic, shard store.Shard, edits []store.Edit) (n int64, err error) {
	var results []store.EditResult
	var stamp store.Stamp
	repeated, err := s.node.Resolve(ctx, func() (err error) {
		stamp, results, err = s.store.Edit(ctx, shard, edits)
		return err
	})
	if err != nil {
		return 0, err
	}
	for i, r := range results {
		if r.Status != store.OK {
			continue
		}
		n++
		ref.Pending(shard.N, stamp.Seq, store.Entry{ID: edits[i].ID, Due: r.Due, Traits: r.Traits})
	}
	if repeated && n < int64(len(edits)) {
		return n, store.ErrUnknown // as above
	}
	return n, nil
}
