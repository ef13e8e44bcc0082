package schedules

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/actors/schedule/access"
	"github.com/ddq-io/ddq/store"
)

// changeTries is how often a schedule may change while a call is at it.
const changeTries = 20

// eventOf says what is to happen to a schedule as it was read; nil: nothing.
type eventOf func(*located) (schedule.Event, *problem.Error)

// change has an event happen to a schedule, and returns the schedule and the effects.
func (s *Schedules) change(ctx context.Context, topic, name string, what eventOf) (*located, schedule.Effects, *problem.Error) {
	unsure := false
	for range changeTries {
		at, err := s.find(ctx, topic, name)
		if err != nil {
			return nil, schedule.Effects{}, err.Behind(unsure)
		}
		event, err := what(at)
		if event == nil || err != nil {
			return at, schedule.Effects{}, err.Behind(unsure)
		}
		after, out, err := s.step(ctx, at, event)
		if after != nil {
			s.cancel(ctx, at.topic.Name, out.Cancel)
		}
		if after != nil || err != nil {
			return after, out, err.Behind(unsure)
		}
		unsure = unsure || at.unsure
	}
	return nil, schedule.Effects{}, errBusy(name).Behind(unsure)
}

// step takes one step of a schedule and commits it. It returns nil when the schedule has to
// be read again first. An event that is refused changes nothing, but what the step decided before it is
// committed: the refusal may tell of that, as of a run that is open.
func (s *Schedules) step(ctx context.Context, at *located, event schedule.Event) (*located, schedule.Effects, *problem.Error) {
	for {
		known := len(at.requeued)
		after, out, e := s.tryStep(ctx, at, event)
		if len(at.requeued) == known {
			return after, out, e
		}
	}
}

// tryStep is step, unless somebody has requeued a run that it was to leave behind: then nothing is done, and at knows.
func (s *Schedules) tryStep(ctx context.Context, at *located, event schedule.Event) (*located, schedule.Effects, *problem.Error) {
	now, err := at.now(ctx, s.node.Clocks(), s.cells)
	if err != nil {
		return nil, schedule.Effects{}, problem.FromStore(err)
	}
	known, err := s.node.Calendars().Fresh(ctx)
	if err != nil {
		return nil, schedule.Effects{}, problem.FromStore(err)
	}
	if edit, ok := event.(schedule.Edit); ok {
		edit.Excluded = known.ExcludedOf(edit.Spec.Calendars, edit.Table.Zone())
		event = edit
	}
	events, taken, e := s.told(ctx, at)
	if e != nil {
		return nil, schedule.Effects{}, e
	}
	full, leave := refuses(ctx, s.tasks, at.topic)
	defer leave()
	after, out := schedule.StepAll(at.Schedule, append(events, event), schedule.Env{
		Now: now, Lead: schedule.Lead, Table: at.table, Excluded: known.Excluded(at.Schedule, at.table.Zone()), Refused: full, Place: s.placer(at.topic.Name), Requeued: at.requeued,
	})
	after.Taken = taken
	refused := refusal(at.Name, &out)
	if refused != nil && len(events) == 0 { // it is of the schedule as it was read
		changed, e := at.changed(ctx, s.cells)
		if changed || e != nil {
			return nil, out, e
		}
		return nil, out, refused
	}
	c, err := schedule.Commit(after, &out, at.cell.Version, at.topic, now)
	if err != nil {
		return nil, out, problem.Bug(err)
	}
	if len(c.Puts[0].Body) > schedule.MaxBody && at.puts(event) {
		return nil, out, problem.BadField(runField(after), "BAD_SCHEDULE", "the schedule has %d bytes; at most %d are allowed", len(c.Puts[0].Body), schedule.MaxBody)
	}
	schedule.Nudge(&c, now)
	done := false
	if !out.Gone && at.namesNew(after) {
		claimed := newClaim(s, at, &c)
		e := claimed.make(ctx, after)
		defer func() {
			if !done {
				claimed.drop(ctx)
			}
		}()
		if e != nil {
			return nil, out, e
		}
	}
	requeued, e := s.tasks.Discard(ctx, at.topic, at.shard, out.Discard)
	if e != nil || len(requeued) > 0 {
		at.requeued = append(at.requeued, requeued...)
		return nil, out, e
	}
	if e = s.askFormer(ctx, at, &out); e != nil {
		return nil, out, e
	}
	if done, e = s.commit(ctx, at, &c); !done || e != nil {
		at.unsure = at.unsure && refused == nil // what was asked for is not in the commit
		return nil, out, e
	}
	if out.Behind { // the commit has decided some of what comes before
		return nil, out, nil
	}
	next := *at
	next.Schedule, next.cell = after, c.Puts[0].Cell
	if _, edits := event.(schedule.Edit); edits {
		if next.table, err = after.Table(); err != nil {
			return nil, out, problem.Bug(err)
		}
	}
	return &next, out, refused
}

// puts reports whether a step is of a put, which is bounded: what a schedule comes to remember has room of its own.
func (at *located) puts(event schedule.Event) bool {
	_, edits := event.(schedule.Edit)
	return edits || at.cell.Version == 0
}

// refuses reports whether a topic takes no task now, as its owner asks. leave is called once the step is made.
func refuses(ctx context.Context, tasks Tasks, topic *store.Topic) (refused bool, leave func()) {
	admission := tasks.Admit()
	err := admission.Enter(ctx, topic)
	return topic.EnqueuePaused || err != nil && err.Reason == "BACKLOG_FULL", admission.Leave
}

// roughly is how exactly the time of a shard is to be known for nobody to ask for it.
const roughly = 100 * time.Millisecond

// now is the time by the clock of the shard. It is asked for where little is known of it, as of a primary that
// was silent when the shard was new: by an earlier time a pause, a resume or an edit would count for what
// was named before it.
func (at *located) now(ctx context.Context, clocks *actors.Clocks, cells store.Cells) (store.Millis, error) {
	if c := clocks.Of(at.shard); c != nil && c.Known(roughly) {
		return c.Millis(), nil
	}
	stamp, _, err := cells.Wakes(ctx, at.shard, store.WakeQuery{Limit: 1})
	return store.Millis(stamp.Now.UnixMilli()), err
}

// changed reports whether a schedule is another one than was read. Then its owner may have taken
// what was told of an end out of the in-box before that was read.
func (at *located) changed(ctx context.Context, cells store.Cells) (bool, *problem.Error) {
	now, err := cells.Cells(ctx, at.shard.For(at.topic.Life), []store.CellID{at.cell.ID})
	if err != nil {
		return false, problem.FromStore(err)
	}
	return now[0].Version != at.cell.Version, nil
}

// toldPage is how many parcels are read at a time.
const toldPage = 256

// told returns what lies in the in-box for a schedule with open runs, and how far that goes, and what is
// on its way there from shards of before a reshard. Which of them have ended decides what becomes of
// occurrences, and of a trigger.
func (s *Schedules) told(ctx context.Context, at *located) (events []schedule.Event, taken int64, _ *problem.Error) {
	taken = at.Taken
	if len(at.Open) == 0 {
		return nil, taken, nil
	}
	underWay, err := at.underWay(ctx, s.cells)
	if err != nil {
		return nil, 0, problem.FromStore(err)
	}
	for after, more := at.Taken, true; more; {
		parcels, err := s.cells.Parcels(ctx, at.shard.For(at.topic.Life), store.InBox, after, toldPage)
		if err != nil {
			return nil, 0, problem.FromStore(err)
		}
		for i := range parcels {
			p := &parcels[i]
			if after = p.Number; p.To != at.cell.ID {
				continue
			}
			taken = p.Number
			if e := schedule.Told(p); e != nil {
				events = append(events, e)
			}
		}
		more = len(parcels) == toldPage
	}
	return append(events, at.EndsOf(underWay)...), taken, nil
}

// underWay returns what is told to the schedule and was on its way from shards of before a reshard.
func (at *located) underWay(ctx context.Context, cells store.Cells) (all []store.Parcel, err error) {
	for _, former := range schedule.Formers(at.topic, at.Name, at.shard.N) {
		parcels, err := access.UnderWay(ctx, cells, former, at.shard, at.Taken, func(p *store.Parcel) bool { return p.To == at.cell.ID })
		if err != nil {
			return nil, err
		}
		all = append(all, parcels...)
	}
	return all, nil
}

var errUnexpected = errors.New("a commit has an outcome that none of a schedule has")

// commit makes a commit, and tells those whom it concerns. It reports false when the
// schedule is another one by now.
func (s *Schedules) commit(ctx context.Context, at *located, c *store.Commit) (bool, *problem.Error) {
	var stamp store.Stamp
	var results []store.CommitResult
	c.From = at.from
	repeated, err := s.node.Resolve(ctx, func() (err error) {
		stamp, results, err = s.cells.Commit(ctx, at.shard.For(at.topic.Life), nil, []store.Commit{*c})
		return err
	})
	if errors.Is(err, store.ErrAnotherServer) {
		at.unsure = repeated
		return false, nil
	}
	if err != nil {
		e := problem.FromStore(err)
		if e.Reason != problem.ReasonSealed {
			return false, e
		}
		return false, problem.FromStore(s.node.Topics().RefreshSealed(ctx, at.topic.Name))
	}
	switch r := results[0]; r.Status {
	case store.OK:
		s.tell(ctx, at.topic.Name, at.shard, c, stamp)
		return true, nil
	case store.Stale:
		if repeated && schedule.Landed(c, &r) {
			s.tell(ctx, at.topic.Name, at.shard, c, stamp)
			return true, nil
		}
		at.unsure = repeated
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

// askFormer asks runs to end that began before a reshard.
func (s *Schedules) askFormer(ctx context.Context, at *located, out *schedule.Effects) *problem.Error {
	ask, former := out.AskFormer(at.topic, at.Name, at.shard.N)
	for _, shard := range former {
		var stamp store.Stamp
		if _, err := s.node.Resolve(ctx, func() (err error) {
			stamp, _, err = s.cells.Commit(ctx, shard.For(at.topic.Life), nil, []store.Commit{ask})
			return err
		}); err != nil {
			return problem.FromStore(err)
		}
		s.tell(ctx, at.topic.Name, shard, &ask, stamp)
	}
	return nil
}

// tell has the owner of a shard look at its schedules at once, and at the tasks that came and went. It
// is a hint: nothing is lost with it but time.
func (s *Schedules) tell(ctx context.Context, topic string, shard store.Shard, c *store.Commit, stamp store.Stamp) {
	if ref, err := s.node.Topics().Open(ctx, topic, false); err == nil {
		ref.Committed(shard.N, c, stamp)
	}
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
		if err := s.tasks.Cancel(ctx, ref, id); err != nil && err.Kind != problem.NotFound {
			s.node.Log().Warn("run of a schedule not cancelled", "topic", topic, "task", id, "err", err)
		}
	}
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
