package schedules

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/actors/forecast"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
)

// PreviewRange says which occurrences a preview names.
type PreviewRange struct {
	From  store.Millis // those after it; 0: from now
	To    store.Millis // none after it; 0: no bound
	Count int          // at most so many; 0: 10
}

// MaxPreview is how many occurrences a preview names at most.
const MaxPreview = 1000

const defaultPreview = 10

func (r *PreviewRange) check() *problem.Error {
	if r.Count == 0 {
		r.Count = defaultPreview
	}
	switch {
	case r.Count < 0 || r.Count > MaxPreview:
		return outOfRange("count", 1, MaxPreview)
	case r.To != 0 && r.To < r.From:
		return problem.BadField("to", "BAD_TIME", "to is before from")
	}
	return nil
}

// Previewed is an occurrence to come.
type Previewed struct {
	At      store.Millis
	Due     store.Millis // 0: known once the schedule exists
	Local   time.Time    // by the clock of the schedule's zone
	Skipped schedule.Reason
}

// Preview is what is to come of a schedule.
type Preview struct {
	Topic       string
	Occurrences []Previewed
	Warnings    []forecast.Collision // of the next runs, whichever occurrences were asked for

	// Audience is what the first of the occurrences that is not skipped would do; nil: the
	// schedule has none.
	Audience *audience.Preview
}

// PreviewExisting names occurrences to come of a schedule.
func (s *Schedules) PreviewExisting(ctx context.Context, topic, name string, r PreviewRange) (Preview, error) {
	if err := r.check(); err != nil {
		return Preview{}, err
	}
	at, e := s.find(ctx, topic, name)
	if e != nil {
		return Preview{}, e
	}
	return s.previewOf(ctx, at, r)
}

func (s *Schedules) previewOf(ctx context.Context, at *located, r PreviewRange) (Preview, error) {
	warnings, err := s.warnings(ctx, at, false)
	if err != nil {
		return Preview{}, err
	}
	p := Preview{Topic: at.topic.Name, Occurrences: s.preview(ctx, at, r), Warnings: warnings}
	seen, e := s.previewAudience(ctx, at, p.Occurrences)
	p.Audience = seen
	return p, e
}

// Preview names occurrences to come of a schedule that need not exist, and refuses what Put
// would.
func (s *Schedules) Preview(ctx context.Context, n Definition, r PreviewRange) (Preview, error) {
	if err := s.ready(); err != nil {
		return Preview{}, err
	}
	if err := r.check(); err != nil {
		return Preview{}, err
	}
	if err := n.check(s.tasks); err != nil {
		return Preview{}, err
	}
	if _, err := tableOf(&n.Spec, n.Name, 0); err != nil { // also what is kept of a stored one, see meant
		return Preview{}, err
	}
	if err := s.calendars.there(ctx, n.Calendars); err != nil {
		return Preview{}, err
	}
	at, err := s.meant(ctx, &n)
	if err != nil {
		return Preview{}, err
	}
	return s.previewOf(ctx, at, r)
}

// meant is the schedule as it would be after a put.
func (s *Schedules) meant(ctx context.Context, n *Definition) (*located, *problem.Error) {
	now := store.Millis(s.node.Clock().Now().UnixMilli())
	topics, err := s.topics(ctx, n.Topic)
	if err != nil && err.Kind != problem.NotFound {
		return nil, err
	}
	at := &located{topic: new(store.Topic), Schedule: &schedule.Schedule{Spec: n.Spec, Name: n.Name, Phase: schedule.Active, Anchor: now, Decided: now}}
	if err == nil {
		at.topic = &topics[0]
		if e := n.checkTopic(ctx, s.tasks, at.topic, false); e != nil {
			return nil, e
		}
		there, e := s.read(ctx, at.topic, n.Name)
		if e != nil {
			return nil, e
		}
		if there != nil {
			n.Timetable = n.Timetable.Keep(there.Timetable)
			known, err := s.node.Calendars().Fresh(ctx)
			if err != nil {
				return nil, problem.FromStore(err)
			}
			return there.edited(known, n, s.node.Clocks().NowAt(there.shard))
		}
	}
	if n.Paused && at.Life == 0 {
		at.Phase = schedule.Paused
	}
	table, e := tableOf(&at.Spec, at.Name, at.Anchor)
	if e != nil {
		return nil, e
	}
	at.table = table
	return at, checkOccurs(table, &at.Spec, now)
}

// edited is a schedule as the step of a put would leave it now.
func (at *located) edited(known schedule.Calendars, n *Definition, now store.Millis) (*located, *problem.Error) {
	table, e := tableOf(&n.Spec, n.Name, at.Anchor)
	if e != nil {
		return nil, e
	}
	edit, e := editOf(at, n, table, now)
	if e != nil || at.Spec.Same(&n.Spec) {
		return at, e
	}
	env := schedule.Env{Now: now, Lead: schedule.Lead, Table: at.table, Excluded: known.Excluded(at.Schedule, at.table.Zone()), Refused: at.topic.EnqueuePaused}
	edit.Excluded = known.ExcludedOf(n.Calendars, table.Zone())
	after, out := schedule.Step(at.Schedule, edit, env)
	for range changeTries {
		if !out.Behind {
			break
		}
		after, out = schedule.Step(after, edit, env)
	}
	next := *at
	next.Schedule = after
	var err error
	next.table, err = after.Table()
	return &next, problem.FromStore(err)
}

func (s *Schedules) preview(ctx context.Context, at *located, r PreviewRange) []Previewed {
	now := store.Millis(s.node.Clock().Now().UnixMilli())
	if at.Life != 0 {
		now = s.node.Clocks().NowAt(at.shard)
	}
	if r.From == 0 {
		r.From = now
	}
	var list []Previewed
	for f := range at.Coming(schedule.Env{Now: now, Table: at.table, Excluded: s.excluded(ctx, at)}, r.From) {
		if len(list) == r.Count || r.To != 0 && f.At > r.To {
			break
		}
		list = append(list, previewed(at, f))
	}
	return list
}

func previewed(at *located, f schedule.Foreseen) Previewed {
	o := Previewed{At: f.At, Due: f.Due, Local: f.At.Time().In(at.table.Zone()), Skipped: f.Skipped}
	if at.Jitter != 0 && at.Life == 0 {
		o.Due = 0
	}
	return o
}
