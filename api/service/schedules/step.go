package schedules

import (
	"context"
	"errors"
	"fmt"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
)

// changeTries is how often a schedule may change while a call is at it.
const changeTries = 20

// eventOf says what is to happen to a schedule as it was read; nil: nothing.
type eventOf func(*located) (schedule.Event, *problem.Error)

// change has an event happen to a schedule, and returns the schedule and the effects.
func (s *Schedules) change(ctx context.Context, topic, name string, what eventOf) (*located, schedule.Effects, *problem.Error) {
	for range changeTries {
		at, err := s.find(ctx, topic, name)
		if err != nil {
			return nil, schedule.Effects{}, err
		}
		event, err := what(at)
		if event == nil || err != nil {
			return at, schedule.Effects{}, err
		}
		after, out, err := s.step(ctx, at, event)
		if after != nil || err != nil {
			return after, out, err
		}
	}
	return nil, schedule.Effects{}, errBusy(name)
}

// step takes one step of a schedule and commits it. It returns nil when the schedule has to
// be read again first.
func (s *Schedules) step(ctx context.Context, at *located, event schedule.Event) (*located, schedule.Effects, *problem.Error) {
	now := s.node.Clocks().NowAt(at.shard)
	known, err := s.node.Calendars().Fresh(ctx)
	if err != nil {
		return nil, schedule.Effects{}, problem.FromStore(err)
	}
	after, out := schedule.Step(at.Schedule, event, schedule.Env{
		Now: now, Lead: schedule.Lead, Table: at.table, Excluded: known.Excluded(at.Schedule, at.table.Zone()), Refused: at.topic.EnqueuePaused, Place: s.placer(at.topic.Name),
	})
	if out.RunOpen != "" {
		return nil, out, errRunOpen(at.Name, out.RunOpen)
	}
	c, err := schedule.Commit(after, &out, at.cell.Version, at.topic, now)
	if err != nil {
		return nil, out, problem.Bug(err)
	}
	if len(c.Puts[0].Body) > schedule.MaxBody {
		return nil, out, problem.BadField("task", "BAD_SCHEDULE", "the schedule has %d bytes; at most %d are allowed", len(c.Puts[0].Body), schedule.MaxBody)
	}
	schedule.Nudge(&c, now)
	done, e := s.commit(ctx, at, &c)
	if !done || e != nil {
		return nil, out, e
	}
	next := *at
	next.Schedule, next.cell = after, c.Puts[0].Cell
	if edit, ok := event.(schedule.Edit); ok {
		next.table = edit.Table
	}
	return &next, out, nil
}

var errUnexpected = errors.New("a commit has an outcome that none of a schedule has")

// commit makes a commit, and tells those whom it concerns. It reports false when the
// schedule is another one by now.
func (s *Schedules) commit(ctx context.Context, at *located, c *store.Commit) (bool, *problem.Error) {
	var stamp store.Stamp
	var results []store.CommitResult
	_, err := s.node.Resolve(ctx, func() (err error) {
		stamp, results, err = s.cells.Commit(ctx, at.shard.For(at.topic.Life), nil, []store.Commit{*c})
		return err
	})
	if err != nil {
		e := problem.FromStore(err)
		if e.Reason != problem.ReasonSealed {
			return false, e
		}
		return false, problem.FromStore(s.node.Topics().RefreshSealed(ctx, at.topic.Name))
	}
	switch r := results[0]; r.Status {
	case store.OK:
		return true, s.tell(ctx, at, c, stamp)
	case store.Stale:
		if schedule.Landed(c, &r) {
			return true, s.tell(ctx, at, c, stamp)
		}
		return false, nil
	case store.WrongState: // a worker has a run that was to be taken back
		_, _, e := s.step(ctx, at, schedule.Begun{ID: r.ID})
		return false, e
	case store.Closed:
		return false, problem.FromStore(s.node.Topics().RefreshSealed(ctx, at.topic.Name))
	default:
		return false, problem.Bug(fmt.Errorf("%w: %v of %s", errUnexpected, r.Status, at.Name))
	}
}

// tell has the owner look at the schedule at once, and at the tasks that came and went. It
// is a hint: nothing is lost with it but time.
func (s *Schedules) tell(ctx context.Context, at *located, c *store.Commit, stamp store.Stamp) *problem.Error {
	ref, err := s.node.Topics().Open(ctx, at.topic.Name, false)
	if err != nil {
		return nil
	}
	if len(c.Adds) > 0 {
		made := make([]store.Entry, len(c.Adds))
		for i, t := range c.Adds {
			made[i] = store.Entry{ID: t.ID, Due: t.Due, Traits: t.Traits}
		}
		ref.Pending(at.shard.N, stamp.Seq, made...)
	}
	ref.CellsChanged(at.shard.N)
	if len(c.Removes) > 0 {
		gone := make([]string, len(c.Removes))
		for i, r := range c.Removes {
			gone[i] = r.ID
		}
		ref.Deleted(at.shard.N, gone...)
	}
	return nil
}

// placer says where a task with slack is needed least.
func (s *Schedules) placer(topic string) func(earliest, latest store.Millis) store.Millis {
	ref, open := s.node.Topics().Opened(topic)
	if !open {
		return nil
	}
	return func(earliest, latest store.Millis) store.Millis {
		return s.tasks.Smooth(ref, earliest, latest)
	}
}
