package cells

import (
	"context"
	"slices"

	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
)

// moveBatch is how many schedules a look sends off at most: about as many as one commit has room for.
const moveBatch = 1000

// wakePages is how many pages of wakes a look reads at most to find the schedules among them.
const wakePages = 10

// former reports whether the shard is of before a reshard: its schedules are to be in others.
func (l *look) former() bool { return Former(l.Topic, l.ID.N) }

// Former reports whether a shard is of before those that are active. One of behind them is
// of a reshard of which this node has not heard yet.
func Former(t *store.Topic, n int) bool { return n < t.Active().First }

// mover is what a look does about shards of before a reshard, and of what was told to them.
type mover struct{ *look }

// formerByNow is former by what the store says, which the caller asks after it has read the cells: an owner
// before this one may have heard of a reshard, and have moved them, of which this node has not heard yet.
func (l mover) formerByNow(ctx context.Context) (bool, error) {
	if l.former() {
		return true, nil
	}
	t, err := l.TopicOf(ctx, l.ID.Topic)
	return t != nil && Former(t, l.ID.N), err
}

// move brings schedules, and what is told to them, to where they lie now. What is in the out-box is
// handed on first: ends of runs are there. Then schedules are sent off, and arrive within the same
// look: one stands still for no longer than that.
func (l mover) move(ctx context.Context) error {
	more, err := l.handOn(ctx)
	if err != nil || more {
		l.out.Again = l.out.Again || more
		return err
	}
	cells, some, err := l.leaving(ctx)
	switch {
	case err != nil:
		return err
	case !some:
		return l.tidy(ctx)
	case len(cells) == 0:
		return nil
	}
	l.looks = nil
	for _, c := range cells {
		l.looks = append(l.looks, schedule.Look{Cell: c, Topic: l.Topic})
	}
	l.out.Again = true
	if err := l.sendAll(ctx); err != nil {
		return err
	}
	_, err = l.handOn(ctx)
	return err
}

// leaving returns the schedules that are sent off next: those that wake first, and then any. It reports whether
// there are some, which may stay.
func (l mover) leaving(ctx context.Context) (leave []store.Cell, some bool, err error) {
	known := make(map[store.CellID]bool)
	add := func(cells []store.Cell) {
		for _, c := range cells {
			some = true
			if !known[c.ID] && l.mayLeave(&c) {
				known[c.ID], leave = true, append(leave, c)
			}
		}
	}
	first, full, err := l.wakeFirst(ctx)
	if add(first); err != nil || full || len(leave) > moveBatch/2 {
		return leave, some, err
	}
	for cursor := ""; ; {
		page, next, err := l.Store.CellPage(ctx, l.ID, store.CellSchedule, cursor, moveBatch)
		if err != nil {
			return nil, false, err
		}
		if add(page); len(leave) > 0 || next == "" {
			return leave, some, nil
		}
		cursor = next
	}
}

// mayLeave reports whether a schedule can be read, and has taken what was told to it: that would be lost.
func (l mover) mayLeave(c *store.Cell) bool { return c.List != schedule.CorruptList && !l.waits[c.ID] }

// wakeFirst returns the schedules among the cells that wake first. full: these are as many bytes as one
// read gives. What else wakes stays here: the next look goes on behind it. A schedule that comes to wake before
// that is one of the others.
func (l mover) wakeFirst(ctx context.Context) (cells []store.Cell, full bool, err error) {
	var ids []store.CellID
	after := l.Progress.others
	for range wakePages {
		_, wakes, err := l.Store.Wakes(ctx, l.ID, store.WakeQuery{After: after, To: store.MaxDue, Limit: moveBatch})
		if err != nil {
			return nil, false, err
		}
		for _, w := range wakes {
			if after = w; w.ID.Kind() == store.CellSchedule {
				ids = append(ids, w.ID)
			} else if len(ids) == 0 {
				l.out.Progress.others = w
			}
		}
		if len(wakes) < moveBatch || len(ids) > moveBatch/2 {
			break
		}
	}
	if len(ids) == 0 {
		return nil, false, nil
	}
	cells, err = l.Store.Cells(ctx, l.ID, ids)
	full = len(cells) < len(ids)
	return slices.DeleteFunc(cells, func(c store.Cell) bool { return c.Version == 0 }), full, err
}

// sendAll sends schedules. Those that change meanwhile are read again.
func (l mover) sendAll(ctx context.Context) error {
	for range commitRounds {
		var commits []store.Commit
		now := l.Now()
		for _, look := range l.looks {
			c, err := schedule.MoveOut(look, schedule.Env{Now: now, Lead: schedule.Lead})
			if err != nil {
				l.Log.Error("the cell of a schedule cannot be read", "topic", l.ID.Topic, "shard", l.ID.N, "cell", look.Cell.ID.Key(), "err", err)
			}
			commits = append(commits, c)
		}
		if len(commits) == 0 {
			return nil
		}
		stamp, results, err := l.commitAll(ctx, l.ID, &l.Fence, commits)
		if err != nil {
			return err
		}
		made := Runs{Seq: stamp.Seq}
		looks := l.looks
		l.looks = nil
		for i := range results {
			look, r := looks[i], &results[i]
			switch {
			case r.Status == store.OK || r.Status == store.Stale && r.Cell.Version == 0:
				made.fresh(&commits[i])
				continue
			case r.Status == store.Stale:
				look = schedule.Look{Cell: r.Cell, Topic: l.Topic}
			case r.Status == store.WrongState:
				look.Begun = append(look.Begun, r.ID)
			}
			l.looks = append(l.looks, look)
		}
		l.out.Made = append(l.out.Made, made)
	}
	return nil
}
