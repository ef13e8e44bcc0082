package cells

import (
	"context"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/actors/schedule/access"
	"github.com/ddq-io/ddq/store"
)

// step returns what becomes of each cell for which something does.
func (l *look) step(ctx context.Context) (commits []store.Commit, kept []schedule.Kept, looks []schedule.Look, err error) {
	now, bytes := l.asOf, 0
	var known schedule.Calendars
	if len(l.looks) > 0 {
		if known, err = l.Calendars(ctx); err != nil {
			return nil, nil, nil, err
		}
	}
	n := len(l.looks) + 1 // and one that forgets parcels
	commits, kept, looks = make([]store.Commit, 0, n), make([]schedule.Kept, 0, n), make([]schedule.Look, 0, n)
	for _, look := range l.looks {
		if bytes > commitBytes {
			l.out.Again = true // the rest is for another look
			break
		}
		if look.Cell.ID.Kind() != store.CellSchedule {
			l.settled(look.Cell.ID) // nobody here knows what it is
			continue
		}
		env := schedule.Env{Now: now, Lead: l.Progress.leadOf(), Refused: l.refused, Place: l.spread, Known: known}
		k, err := schedule.Keep(look, env)
		if k.Overlaps {
			if look.UnderWay = l.underWay(ctx, look.Cell.ID); len(look.UnderWay) > 0 {
				k, err = schedule.Keep(look, env)
			}
		}
		if len(k.Doubt) > 0 {
			if look.Lost, err = l.findEnded(ctx, k.Doubt); err != nil {
				return nil, nil, nil, err
			}
			k, err = schedule.Keep(look, env)
		}
		if err != nil {
			l.Metrics.Corrupt.Inc()
			l.Log.Error("the cell of a schedule cannot be read", "topic", l.ID.Topic, "shard", l.ID.N, "cell", look.Cell.ID.Key(), "err", err)
		}
		requeued, failed := access.Discard(ctx, l.Tasks, l.Topic, l.ID, k.Discard)
		if failed != nil {
			return nil, nil, nil, failed
		}
		if len(requeued) > 0 {
			look.Requeued = append(look.Requeued, requeued...)
			if k, err = schedule.Keep(look, env); err != nil {
				return nil, nil, nil, err // it was readable a moment ago
			}
		}
		if len(k.Commit.Puts) == 0 {
			l.noteGone(&look.Cell)
			l.settled(look.Cell.ID)
			continue
		}
		commits, kept, looks = append(commits, k.Commit), append(kept, k), append(looks, look)
		bytes += commitSize(&k.Commit)
	}
	return commits, kept, looks, nil
}

// commitSize is about how many bytes a commit has.
func commitSize(c *store.Commit) int {
	n := 0
	for i := range c.Puts {
		n += len(c.Puts[i].Body)
	}
	for _, t := range c.Adds {
		n += t.Bytes() + 256
	}
	return n
}

// findEnded looks at the tasks of runs that have been open for long. That some have ended,
// and that was not told, is repaired.
func (l *look) findEnded(ctx context.Context, ids []string) ([]schedule.Ended, error) {
	found, err := access.Find(ctx, l.Tasks, l.Topic, l.ID, ids)
	if err != nil {
		return nil, err
	}
	lost := schedule.LostEnds(found, l.Now())
	if len(lost) > 0 {
		l.Metrics.Repaired.Add(float64(len(lost)))
		l.Log.Warn("ends of runs were not told", "topic", l.ID.Topic, "shard", l.ID.N, "count", len(lost))
	}
	return lost, nil
}

// noteGone records that a cell is gone: what was told to it is dropped.
func (l *look) noteGone(c *store.Cell) {
	if c.Version == 0 {
		l.gone[c.ID] = true
	}
}

// settled records that a cell has taken the parcels for it.
func (l *look) settled(id store.CellID) { delete(l.waits, id) }

// commit makes commits, and leaves the looks for which that failed.
func (l *look) commit(ctx context.Context, commits []store.Commit, kept []schedule.Kept, looks []schedule.Look) error {
	if err := l.askFormer(ctx, kept, looks); err != nil {
		return err
	}
	stamp, results, err := l.commitAll(ctx, l.ID, &l.Fence, commits)
	if err != nil {
		return err
	}
	l.looks = nil
	made := Runs{Seq: stamp.Seq}
	for i := range looks {
		look, r := looks[i], &results[i]
		l.Metrics.CountCommit("schedule", r.Status)
		switch {
		case r.Status == store.OK:
			made.fresh(&commits[i])
			l.accept(ctx, &commits[i], &kept[i], look.Cell.ID)
			continue
		case r.Status == store.Stale && schedule.Landed(&commits[i], r):
			made.known(&commits[i])
			l.accept(ctx, &commits[i], &kept[i], look.Cell.ID)
			continue
		case r.Status == store.Stale && r.Cell.ID == look.Cell.ID:
			look.Cell = r.Cell
			look.Begun, look.Alien, look.Lost = nil, nil, nil
		case r.Status == store.Stale && kept[i].FlowIn(r.Cell.ID) != "":
			look.Alien = append(look.Alien, kept[i].FlowIn(r.Cell.ID))
		case r.Status == store.WrongState:
			look.Begun = append(look.Begun, r.ID)
		case r.Status == store.Conflict:
			look.Alien = append(look.Alien, r.ID)
		}
		l.looks = append(l.looks, look)
	}
	l.out.Made = append(l.out.Made, made)
	return nil
}

// accept records a commit that was made.
func (l *look) accept(ctx context.Context, c *store.Commit, k *schedule.Kept, id store.CellID) {
	l.settled(id)
	l.quiet.note(id, k.QuietUntil())
	l.changed = true
	l.out.Cancelled = append(l.out.Cancelled, fleet.RunningHolds(ctx, l.Tasks, l.ID, c.Cancels)...)
	l.count(k)
}

// count counts what became of occurrences.
func (l *look) count(k *schedule.Kept) {
	now := l.Now()
	for _, m := range k.Make {
		if m.Origin == schedule.ByTimetable {
			l.Metrics.CountMade(l.ID.Topic, m.At.Sub(now))
		}
	}
	missed := int64(0)
	for _, skip := range k.Skips {
		l.Metrics.CountSkipped(l.ID.Topic, skip.Reason.String(), skip.Count)
		if skip.Reason == schedule.Missed {
			missed += skip.Count
		}
	}
	if missed > 0 {
		l.Log.Warn("occurrences missed", "topic", l.ID.Topic, "shard", l.ID.N, "schedule", k.Schedule.Name, "count", missed)
	}
	if k.Paused {
		l.Log.Warn("schedule paused after failures", "topic", l.ID.Topic, "shard", l.ID.N, "schedule", k.Schedule.Name)
	}
}

// commitAll commits, and repeats that while it is not known what became of it. The shard's own
// cells are those that the look has read: another server changes none of its own by them.
func (l *look) commitAll(ctx context.Context, s store.Shard, f *store.Fence, commits []store.Commit) (stamp store.Stamp, results []store.CommitResult, err error) {
	if s == l.ID {
		for i := range commits {
			commits[i].From = l.Progress.from
		}
	}
	repeated, err := l.Resolve(ctx, func() error {
		stamp, results, err = l.Store.Commit(ctx, s.For(l.Topic.Life), f, commits)
		return err
	})
	l.out.Repeated = l.out.Repeated || repeated
	return stamp, results, err
}
