package schedules

import (
	"slices"
	"time"

	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/timetable"
)

// Status is a schedule as it stands.
type Status struct {
	Topic string
	*schedule.Schedule
	Next store.Millis // 0: none, or not known before a run ends
	Last store.Millis // the latest occurrence that is remembered; 0: none
}

// Version is 1 for a schedule that is new, and rises by one with every edit.
func versionOf(s *schedule.Schedule) int64 { return s.Edits + 1 }

// Version is 1 when the schedule is created, and rises by one with every put that changes it.
func (s *Status) Version() int64 { return versionOf(s.Schedule) }

// statusOf says how a schedule stands at a moment.
func statusOf(topic string, s *schedule.Schedule, table *timetable.Timetable, now store.Millis, excluded func(time.Time) bool) Status {
	status := Status{Topic: topic, Schedule: s, Next: nextOf(s, table, now, excluded)}
	for _, r := range s.Open {
		if r.At <= now {
			status.Last = max(status.Last, r.At)
		}
	}
	for _, h := range s.History {
		if h.At <= now {
			status.Last = max(status.Last, h.At)
		}
	}
	return status
}

// lookAhead is how many excluded occurrences are passed over in search of the next one.
const lookAhead = 1000

// nextOf is the next occurrence that a run is made of, as far as is known.
func nextOf(s *schedule.Schedule, table *timetable.Timetable, now store.Millis, excluded func(time.Time) bool) store.Millis {
	ahead := slices.DeleteFunc(slices.Clone(s.Open), func(r schedule.Run) bool { return r.Origin != schedule.ByTimetable || r.At <= now })
	switch {
	case s.Phase != schedule.Active:
		return 0
	case len(ahead) > 0:
		return ahead[0].At
	case table.FromEnd() && len(s.Open) > 0:
		return 0
	}
	passed := 0
	for f := range s.Coming(schedule.Env{Now: now, Table: table, Excluded: excluded}, s.Decided) {
		if f.Skipped == 0 && !slices.Contains(s.Early, f.At) {
			return f.At
		}
		if passed++; passed == lookAhead {
			break
		}
	}
	return 0
}
