package forecast

import (
	"slices"
	"time"

	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/timetable"
)

// Rehearsal plays a schedule ahead of time, by the steps that its owner takes. Its runs end
// when they are due, and those of audiences with their window: nobody knows better.
type Rehearsal struct {
	Schedule *schedule.Schedule // as it stands; it is not changed
	Table    *timetable.Timetable
	Excluded func(time.Time) bool // by calendars; nil: nothing
	Now      store.Millis         // when the play begins, and then how far it has come
	Known    bool                 // it has begun

	wake store.Millis // when the schedule wakes; 0: never
}

// Rehearsed is a run that would be made.
type Rehearsed struct {
	ID string
	schedule.Run
}

// Play goes on until the runs of a time are made, or so many, or so many steps were taken, and
// returns those that are due from a moment on and before another. More: it has not come
// to the end.
func (r *Rehearsal) Play(from, to store.Millis, runs, steps int) (made []Rehearsed, took int, more bool) {
	if !r.Known {
		made = r.step(nil, from, to)
		took, r.Known = 1, true
	}
	for len(made) < runs && took < steps {
		at, event, ok := r.next()
		if !ok || at >= to {
			return made, took, false
		}
		r.Now = max(r.Now, at)
		made = append(made, r.step(event, from, to)...)
		took++
	}
	return made, took, true
}

// Resume has a rehearsal go on where another one stopped.
func (r *Rehearsal) Resume(state *schedule.Schedule, now, wake store.Millis) {
	spec := r.Schedule.Spec
	r.Schedule, r.Now, r.wake, r.Known = state, now, wake, true
	r.Schedule.Spec = spec
}

// State is what Resume needs, without what the schedule says.
func (r *Rehearsal) State() (state *schedule.Schedule, now, wake store.Millis) {
	s := *r.Schedule
	s.Spec, s.History, s.Requests, s.Note, s.PausedBy = schedule.Spec{Overlap: s.Overlap, CatchUp: s.CatchUp}, nil, nil, "", ""
	return &s, r.Now, r.wake
}

// next is what happens next: a run ends, or the schedule wakes.
func (r *Rehearsal) next() (at store.Millis, e schedule.Event, ok bool) {
	if at = r.wake; at != 0 {
		ok = true
	}
	if r.Schedule.Untracked {
		return at, nil, ok
	}
	for _, run := range r.Schedule.Open {
		if end := r.endOf(run); !ok || end <= at {
			at, e, ok = end, schedule.Ended{ID: r.Schedule.ID(run.Occurrence), Outcome: schedule.Done, At: end, Started: run.Due}, true
		}
	}
	return at, e, ok
}

func (r *Rehearsal) endOf(run schedule.Run) store.Millis {
	end := max(run.Due, run.At)
	if a := r.Schedule.Audience; run.Walk && a != nil {
		end = end.Add(a.Window + clocks(r.Schedule))
	}
	return end
}

func (r *Rehearsal) step(e schedule.Event, from, to store.Millis) (made []Rehearsed) {
	events := []schedule.Event{e, schedule.Watched{}}
	if e == nil {
		events = events[1:]
	}
	after, out := schedule.StepAll(r.Schedule, events, schedule.Env{Now: r.Now, Lead: schedule.Lead, Table: r.Table, Excluded: r.Excluded})
	r.Schedule, r.wake = after, out.Wake
	if out.Gone {
		r.Schedule.Open, r.wake = nil, 0
	}
	for _, m := range out.Make {
		if m.Due >= from && m.Due < to {
			made = append(made, Rehearsed{ID: r.Schedule.RunID(m.Run), Run: m.Run})
		}
	}
	slices.SortStableFunc(made, func(a, b Rehearsed) int { return int(a.Due - b.Due) })
	return made
}
