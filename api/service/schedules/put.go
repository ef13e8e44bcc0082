package schedules

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/ddq-io/ddq/actors/forecast"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/timetable"
)

// MaxPuts is how many schedules one call puts at most.
const MaxPuts = 1000

// Outcome is what a put did.
type Outcome uint8

const (
	Created Outcome = iota + 1
	Changed
	Unchanged // it was like that before
)

// Put is the answer to a put.
type Put struct {
	Version int64
	Outcome Outcome
	Next    store.Millis // 0: none, or not known before a run ends

	Warnings []forecast.Collision // of what was created or changed

	unsure bool // see located
}

// Put creates a schedule, or changes it in place. The same again changes nothing. With
// ifVersion the schedule must have this version, and with 0 not exist.
func (s *Schedules) Put(ctx context.Context, n Definition, ifVersion *int64) (Put, error) {
	if err := s.ready(); err != nil {
		return Put{}, err
	}
	if err := n.check(s.tasks); err != nil {
		return Put{}, err
	}
	table, e := tableOf(&n.Spec, n.Name, 0) // before a topic is created for it
	if e != nil {
		return Put{}, e
	}
	if err := s.knowsAudience(ctx, &n); err != nil {
		return Put{}, err
	}
	unsure := false
	for range changeTries {
		put, err := s.putOnce(ctx, &n, table, ifVersion)
		if err != nil {
			return Put{}, err.Behind(unsure)
		}
		if put.Outcome != 0 {
			return put, nil
		}
		unsure = unsure || put.unsure
	}
	return Put{}, errBusy(n.Name).Behind(unsure)
}

// putOnce answers no outcome when the schedule has to be read again. The timetable is of any anchor.
func (s *Schedules) putOnce(ctx context.Context, n *Definition, table *timetable.Timetable, ifVersion *int64) (Put, *problem.Error) {
	ref, err := s.node.Topics().Open(ctx, n.Topic, true)
	if err != nil {
		return Put{}, err
	}
	topic := *ref.Config()
	if err := n.checkTopic(ctx, s.tasks, &topic, true); err != nil {
		return Put{}, err
	}
	if err := s.calendars.there(ctx, n.Calendars); err != nil {
		return Put{}, err
	}
	at, err := s.read(ctx, &topic, n.Name)
	if err != nil {
		return Put{}, err
	}
	if err := n.checkVersion(at, ifVersion); err != nil {
		return Put{}, err
	}
	if table, err = n.keepTimes(at, table); err != nil {
		return Put{}, err
	}
	if at != nil && at.Spec.Same(&n.Spec) {
		return Put{Version: versionOf(at.Schedule), Outcome: Unchanged, Next: s.status(ctx, at).Next}, nil
	}
	if err := s.node.AllTell(); err != nil {
		return Put{}, err
	}
	if err := s.tasks.Outbox(ctx, &topic); err != nil {
		return Put{}, err
	}
	var put Put
	if at == nil {
		put, err = s.create(ctx, n, &topic, table)
	} else {
		put, err = s.edit(ctx, n, at, table)
	}
	return put, err
}

// keepTimes has expressions of the stored schedule, if there is one, read as they are read there. It returns
// the timetable of the definition for that; table is the one of now.
func (n *Definition) keepTimes(stored *located, table *timetable.Timetable) (*timetable.Timetable, *problem.Error) {
	was := timetable.Spec{}
	if stored != nil {
		was = stored.Timetable
	}
	n.Timetable = n.Timetable.Keep(was)
	if !slices.ContainsFunc(n.Timetable.Entries, func(e timetable.Entry) bool { return e.Legacy }) {
		return table, nil
	}
	return tableOf(&n.Spec, n.Name, 0)
}

func (n *Definition) checkVersion(at *located, ifVersion *int64) *problem.Error {
	switch {
	case ifVersion == nil:
	case *ifVersion < 0:
		return problem.BadField("if_version", "OUT_OF_RANGE_FIELD", "if_version must not be negative")
	case at == nil && *ifVersion != 0:
		return &problem.Error{Kind: problem.Aborted, Reason: "VERSION_MISMATCH", Field: "if_version", Message: fmt.Sprintf("there is no schedule %q", n.Name)}
	case at != nil && *ifVersion == 0:
		return &problem.Error{Kind: problem.Exists, Reason: "SCHEDULE_EXISTS", Field: "name", Message: fmt.Sprintf("schedule %q exists", n.Name)}
	case at != nil && *ifVersion != versionOf(at.Schedule):
		return versionMismatch(at.Schedule)
	}
	return nil
}

// knowsAudience refuses a schedule of an audience, or of a kind, that does not exist.
func (s *Schedules) knowsAudience(ctx context.Context, n *Definition) *problem.Error {
	if n.Audience == nil {
		return nil
	}
	return problem.FromStore(s.audiences.CheckTarget(ctx, n.Audience.Name, n.Audience.Kind))
}

func (s *Schedules) create(ctx context.Context, n *Definition, topic *store.Topic, table *timetable.Timetable) (Put, *problem.Error) {
	shard := schedule.Shards(topic, n.Name)[0]
	now := s.node.Clocks().NowAt(shard)
	fresh := &schedule.Schedule{
		Spec: n.Spec, Name: n.Name, Life: rand.Uint64(), Created: now, Phase: schedule.Active, Anchor: now, Decided: now,
	}
	if n.Paused {
		fresh.Phase, fresh.Note = schedule.Paused, n.Note
	}
	table = table.MadeAt(now.Time())
	if err := checkOccurs(table, &n.Spec, now); err != nil {
		return Put{}, err
	}
	if err := s.takeRoom(ctx, topic); err != nil {
		return Put{}, err
	}
	leave, err := s.tasks.AdmitSchedule(ctx, topic.Name)
	if err != nil {
		return Put{}, err
	}
	defer leave()
	at := &located{Schedule: fresh, topic: topic, shard: shard, table: table}
	after, _, err := s.step(ctx, at, nil)
	if after == nil || err != nil {
		return Put{unsure: at.unsure}, err
	}
	return s.put(ctx, after, Created), nil
}

func (s *Schedules) edit(ctx context.Context, n *Definition, at *located, table *timetable.Timetable) (Put, *problem.Error) {
	edit, err := editOf(at, n, table, s.node.Clocks().NowAt(at.shard))
	if err != nil {
		return Put{}, err
	}
	after, _, err := s.step(ctx, at, edit)
	if after == nil || err != nil {
		return Put{unsure: at.unsure}, err
	}
	return s.put(ctx, after, Changed), nil
}

// editOf is what a put does to a schedule that is there. The timetable is that of the definition, of any anchor.
func editOf(at *located, n *Definition, table *timetable.Timetable, now store.Millis) (schedule.Edit, *problem.Error) {
	anew, anchor := at.Anew(&n.Spec), at.Anchor
	if anew {
		anchor = now
	}
	table = table.MadeAt(anchor.Time())
	return schedule.Edit{Spec: n.Spec, Table: table, Anew: anew}, checkOccurs(table, &n.Spec, now)
}
