package service

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
)

// changeTries is how often a schedule may change while a call is at it.
const changeTries = 20

// eventOf says what is to happen to a schedule as it was read; nil: nothing.
type eventOf func(*scheduleAt) (schedule.Event, *problem.Error)

// change has an event happen to a schedule, and returns the schedule and the effects.
func (s *Schedules) change(ctx context.Context, topic, name string, what eventOf) (*scheduleAt, schedule.Effects, *problem.Error) {
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
func (s *Schedules) step(ctx context.Context, at *scheduleAt, event schedule.Event) (*scheduleAt, schedule.Effects, *problem.Error) {
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

// commit makes a commit, and tells those whom it concerns. It reports false when the
// schedule is another one by now.
func (s *Schedules) commit(ctx context.Context, at *scheduleAt, c *store.Commit) (bool, *problem.Error) {
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
func (s *Schedules) tell(ctx context.Context, at *scheduleAt, c *store.Commit, stamp store.Stamp) *problem.Error {
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
		return intakeOf(ref).Smooth.Place(earliest, latest, s.node.Random())
	}
}

// Pause stops a schedule from making runs. One that is paused stays as it is.
func (s *Schedules) Pause(ctx context.Context, topic, name, by, note string) (ScheduleStatus, error) {
	return s.turn(ctx, topic, name, by, note, func(at *scheduleAt) schedule.Event {
		if at.Phase != schedule.Active {
			return nil
		}
		return schedule.Pause{By: by, Note: note}
	})
}

// Resume lets a paused schedule go on. One that is active stays as it is.
func (s *Schedules) Resume(ctx context.Context, topic, name, by, note string) (ScheduleStatus, error) {
	return s.turn(ctx, topic, name, by, note, func(at *scheduleAt) schedule.Event {
		if at.Phase != schedule.Paused {
			return nil
		}
		return schedule.Resume{By: by, Note: note}
	})
}

func (s *Schedules) turn(ctx context.Context, topic, name, by, note string, what func(*scheduleAt) schedule.Event) (ScheduleStatus, error) {
	if err := checkNote("by", by, maxScheduleName); err != nil {
		return ScheduleStatus{}, err
	}
	if err := checkNote("note", note, maxNote); err != nil {
		return ScheduleStatus{}, err
	}
	at, _, err := s.change(ctx, topic, name, func(at *scheduleAt) (schedule.Event, *problem.Error) {
		if at.Phase == schedule.Finished {
			return nil, errFinished(at.Name)
		}
		return what(at), nil
	})
	if err != nil {
		return ScheduleStatus{}, err
	}
	return s.status(ctx, at), nil
}

// ScheduleDeletion says what becomes of a schedule that is deleted.
type ScheduleDeletion struct {
	CancelRuns bool  // those that are open
	IfVersion  int64 // that it must have; 0: any
}

// Delete deletes a schedule and returns its topic.
func (s *Schedules) Delete(ctx context.Context, topic, name string, d ScheduleDeletion) (foundIn string, err error) {
	at, out, e := s.change(ctx, topic, name, func(at *scheduleAt) (schedule.Event, *problem.Error) {
		if d.IfVersion != 0 && d.IfVersion != versionOf(at.Schedule) {
			return nil, versionMismatch(at)
		}
		return schedule.Delete{CancelOpen: d.CancelRuns}, nil
	})
	if e != nil {
		return "", e
	}
	s.cancel(ctx, at.topic.Name, out.Cancel)
	return at.topic.Name, nil
}

// cancel tells the workers of runs that the store has marked as to be ended. One that it
// does not reach learns it when it extends its hold.
func (s *Schedules) cancel(ctx context.Context, topic string, ids []string) {
	if len(ids) == 0 {
		return
	}
	ref, err := s.node.Topics().Open(ctx, topic, false)
	if err != nil {
		return
	}
	for _, id := range ids {
		if _, err := s.tasks.requestCancel(ctx, ref, id, true); err != nil && err.Kind != problem.NotFound {
			s.node.Log().Warn("run of a deleted schedule not cancelled", "topic", topic, "task", id, "err", err)
		}
	}
}

// Trigger asks for a run outside the timetable.
type Trigger struct {
	Topic, Name string           // an empty topic: every topic is searched
	Overlap     schedule.Overlap // 0: the schedule's
	Request     string           // the same again makes no second run; empty: it is not repeated
}

// Triggered is what a trigger made.
type Triggered struct {
	Topic    string
	ID       string // of the task; empty: it waits, or is a repeat whose run is over
	Waiting  bool
	Repeated bool
}

// Trigger makes a run of a schedule now.
func (s *Schedules) Trigger(ctx context.Context, t Trigger) (Triggered, error) {
	if t.Overlap > schedule.Allow {
		return Triggered{}, problem.BadField("overlap", "BAD_ENUM", "overlap has no value %d", t.Overlap)
	}
	if err := checkNote("request_id", t.Request, maxScheduleName); err != nil {
		return Triggered{}, err
	}
	if t.Request == "" {
		t.Request = uuid.NewString()
	}
	admission := admission{node: s.node}
	defer admission.leave()
	repeated := false
	at, out, err := s.change(ctx, t.Topic, t.Name, func(at *scheduleAt) (schedule.Event, *problem.Error) {
		if repeated = knows(at.Requests, t.Request); repeated {
			return nil, nil
		}
		if err := s.admit(ctx, &admission, at); err != nil {
			return nil, err
		}
		overlap := t.Overlap
		if overlap == 0 {
			overlap = at.Overlap
		}
		return schedule.Trigger{Request: t.Request, Overlap: overlap}, nil
	})
	if err != nil {
		return Triggered{}, err
	}
	made := Triggered{Topic: at.topic.Name, Repeated: repeated}
	made.ID, made.Waiting = triggered(at.Schedule, &out, t.Request)
	return made, nil
}

// admit refuses runs of a schedule that is over, and of a topic that takes no task.
func (s *Schedules) admit(ctx context.Context, admission *admission, at *scheduleAt) *problem.Error {
	switch {
	case at.Phase == schedule.Finished:
		return errFinished(at.Name)
	case at.topic.EnqueuePaused:
		return problem.EnqueuePaused(at.topic.Name)
	}
	return admission.enter(ctx, at.topic)
}

func knows(list []string, id string) bool {
	for _, known := range list {
		if known == id {
			return true
		}
	}
	return false
}

// triggered finds the run of a request, or that it waits.
func triggered(s *schedule.Schedule, out *schedule.Effects, request string) (id string, waiting bool) {
	n := schedule.NumberOf(request)
	is := func(o schedule.Occurrence) bool { return o.Origin == schedule.ByTrigger && o.N == n }
	for _, m := range out.Make {
		if is(m.Occurrence) {
			return m.ID, false
		}
	}
	for _, r := range s.Open {
		if is(r.Occurrence) {
			return s.ID(r.Occurrence), false
		}
	}
	for _, o := range s.Waiting {
		if is(o) {
			return "", true
		}
	}
	return "", false
}

func errRunOpen(name, id string) *problem.Error {
	return &problem.Error{Kind: problem.Precondition, Reason: "RUN_OPEN", Field: "overlap", State: store.StateRunning, ID: id,
		Message: fmt.Sprintf("a run of schedule %q is open: task %s", name, id)}
}

func errFinished(name string) *problem.Error {
	return &problem.Error{Kind: problem.Precondition, Reason: "SCHEDULE_FINISHED", Field: "name",
		Message: fmt.Sprintf("schedule %q is finished: no occurrence is left", name)}
}

func versionMismatch(at *scheduleAt) *problem.Error {
	return &problem.Error{Kind: problem.Aborted, Reason: "VERSION_MISMATCH", Field: "if_version", Version: versionOf(at.Schedule),
		Message: fmt.Sprintf("schedule %q is at version %d", at.Name, versionOf(at.Schedule))}
}
