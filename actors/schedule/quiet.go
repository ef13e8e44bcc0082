package schedule

import "github.com/ddq-io/ddq/store"

// quietBefore is how long before the next occurrence an end is to be known again: what comes next is
// made ahead then.
const quietBefore = 2 * Lead

// QuietUntil is until when the end of a run changes nothing but what the schedule remembers of it; 0:
// something may hang on it. It holds for as long as nobody else changes the schedule.
func (k *Kept) QuietUntil() store.Millis {
	if k.Schedule == nil || k.Gone || k.Wake == 0 || !k.Schedule.endsQuietly() {
		return 0
	}
	return k.Wake.Add(-quietBefore)
}

// endsQuietly reports whether nothing is to follow on the end of a run: no occurrence that waits or is
// counted from it, no pause, and nobody who waits for the end of a walk or a workflow.
func (s *Schedule) endsQuietly() bool {
	for _, r := range s.Open {
		if r.Walk || r.Flow {
			return false
		}
	}
	fromEnd := len(s.Timetable.Entries) > 0 && s.Timetable.Entries[0].FromEnd
	return len(s.Open) > 0 && len(s.Open) < MaxOpen && len(s.Waiting)+len(s.Backfills) == 0 && s.PauseAt == 0 && !fromEnd
}
