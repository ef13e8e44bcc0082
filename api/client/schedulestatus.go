package client

import (
	"time"

	"github.com/ddq-io/ddq/api/client/internal/fields"
	"github.com/ddq-io/ddq/api/client/internal/wire"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// ScheduleStatus is a schedule and how it stands. Times that there are not are zero.
type ScheduleStatus struct {
	Schedule
	State    ScheduleState
	PausedBy string
	Next     time.Time     // the next occurrence; zero also when it depends on the end of a run
	Last     time.Time     // the latest occurrence that was decided
	OpenRuns []ScheduleRun // the oldest first
	Waiting  int           // occurrences that wait for the end of a run
	Failures int           // in a row
	Runs     []ScheduleRun // that ended, and skips, the oldest first
	Totals   ScheduleTotals

	Backfills []BackfillProgress // in the order in which they were asked for
}

// BackfillProgress is how far a backfill is.
type BackfillProgress struct {
	ID      string    `json:"id"`
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Overlap Overlap   `json:"overlap"`
	Total   int64     `json:"total"` // occurrences
	Made    int64     `json:"made"`  // runs, so far
}

// MarshalJSON writes the form that `ddq schedule describe -o json` prints.
func (b BackfillProgress) MarshalJSON() ([]byte, error) { return fields.Write(b) }

// UnmarshalJSON reads it.
func (b *BackfillProgress) UnmarshalJSON(text []byte) error { return fields.Read(text, b) }

// ScheduleState is whether a schedule makes runs.
type ScheduleState int32

// The states of a schedule.
const (
	ScheduleActive   ScheduleState = ScheduleState(ddqv1.ScheduleState_SCHEDULE_STATE_ACTIVE)
	SchedulePaused   ScheduleState = ScheduleState(ddqv1.ScheduleState_SCHEDULE_STATE_PAUSED)
	ScheduleFinished ScheduleState = ScheduleState(ddqv1.ScheduleState_SCHEDULE_STATE_FINISHED) // no occurrence is left; it is deleted after seven days
)

// String returns the state in lower case, such as "active".
func (s ScheduleState) String() string {
	return wire.Word(ddqv1.ScheduleState(s).String(), "SCHEDULE_STATE_")
}

// ScheduleRun is a run, or skips of one reason in a row.
type ScheduleRun struct {
	Occurrence time.Time     `json:"occurrence_time"` // of skips the last one
	Due        time.Time     `json:"due,omitempty"`
	ID         string        `json:"id,omitempty"` // of the task
	Origin     RunOrigin     `json:"origin"`
	Outcome    RunOutcome    `json:"outcome,omitempty"` // zero while it is open, and of skips
	Skipped    SkipReason    `json:"skipped,omitempty"` // why there was no run
	Count      int64         `json:"count,omitempty"`   // of skips
	Late       time.Duration `json:"late_ms,omitempty"` // from when it was due to its last attempt
	Took       time.Duration `json:"duration_ms,omitempty"`
}

// MarshalJSON writes the form that `ddq schedule describe -o json` prints.
func (r ScheduleRun) MarshalJSON() ([]byte, error) { return fields.Write(r) }

// UnmarshalJSON reads it.
func (r *ScheduleRun) UnmarshalJSON(b []byte) error { return fields.Read(b, r) }

// RunOrigin is what named an occurrence.
type RunOrigin int32

// What may name one.
const (
	RunByTimetable RunOrigin = RunOrigin(ddqv1.RunOrigin_RUN_ORIGIN_TIMETABLE)
	RunByTrigger   RunOrigin = RunOrigin(ddqv1.RunOrigin_RUN_ORIGIN_TRIGGER)
	RunByBackfill  RunOrigin = RunOrigin(ddqv1.RunOrigin_RUN_ORIGIN_BACKFILL)
)

// String returns the origin in lower case, such as "timetable".
func (o RunOrigin) String() string { return wire.Word(ddqv1.RunOrigin(o).String(), "RUN_ORIGIN_") }

// RunOutcome is how a run ended.
type RunOutcome int32

// How runs end.
const (
	RunDone    RunOutcome = RunOutcome(ddqv1.RunOutcome_RUN_OUTCOME_DONE)
	RunFailed  RunOutcome = RunOutcome(ddqv1.RunOutcome_RUN_OUTCOME_FAILED)  // its task is dead or expired
	RunRemoved RunOutcome = RunOutcome(ddqv1.RunOutcome_RUN_OUTCOME_REMOVED) // its task was deleted or cancelled
)

// String returns the outcome in lower case, such as "done", and "" for none.
func (o RunOutcome) String() string {
	return wire.WordOr(ddqv1.RunOutcome(o).String(), "RUN_OUTCOME_", "")
}

// SkipReason is why no run was made of an occurrence.
type SkipReason int32

// The reasons.
const (
	SkipOverlap    SkipReason = SkipReason(ddqv1.SkipReason_SKIP_REASON_OVERLAP)     // a run was open
	SkipSuperseded SkipReason = SkipReason(ddqv1.SkipReason_SKIP_REASON_SUPERSEDED)  // a later occurrence took its place
	SkipBufferFull SkipReason = SkipReason(ddqv1.SkipReason_SKIP_REASON_BUFFER_FULL) // 1,000 were waiting
	SkipMissed     SkipReason = SkipReason(ddqv1.SkipReason_SKIP_REASON_MISSED)      // nobody decided it in time
	SkipPaused     SkipReason = SkipReason(ddqv1.SkipReason_SKIP_REASON_PAUSED)
	SkipRefused    SkipReason = SkipReason(ddqv1.SkipReason_SKIP_REASON_REFUSED)  // the topic took no task of it until its grace was over
	SkipExcluded   SkipReason = SkipReason(ddqv1.SkipReason_SKIP_REASON_EXCLUDED) // a calendar leaves it out
)

// String returns the reason in lower case, such as "overlap", and "" for none.
func (r SkipReason) String() string {
	return wire.WordOr(ddqv1.SkipReason(r).String(), "SKIP_REASON_", "")
}

// ScheduleTotals count the runs of a schedule since it was created, and the occurrences that
// none was made of, by the reason.
type ScheduleTotals struct {
	Made    int64            `json:"made"` // by the timetable
	Done    int64            `json:"done"`
	Failed  int64            `json:"failed"`
	Removed int64            `json:"removed"`
	Skipped map[string]int64 `json:"skipped,omitempty"` // by SkipReason.String
}

func scheduleStatus(w *ddqv1.Schedule, st *ddqv1.ScheduleStatus) ScheduleStatus {
	s := ScheduleStatus{
		Schedule: scheduleFrom(w),
		State:    ScheduleState(st.GetState()), PausedBy: st.GetPausedBy(),
		Next: wire.Time(st.GetNextTime()), Last: wire.Time(st.GetLastTime()),
		OpenRuns: runsFrom(st.GetOpenRuns()), Waiting: int(st.GetWaiting()), Failures: int(st.GetFailures()), Runs: runsFrom(st.GetHistory()),
	}
	for _, b := range st.GetBackfills() {
		s.Backfills = append(s.Backfills, BackfillProgress{
			ID: b.GetId(), From: wire.Time(b.GetFrom()), To: wire.Time(b.GetTo()), Overlap: Overlap(b.GetOverlap()), Total: b.GetTotal(), Made: b.GetMade(),
		})
	}
	t := st.GetTotals()
	s.Totals = ScheduleTotals{Made: t.GetMade(), Done: t.GetDone(), Failed: t.GetFailed(), Removed: t.GetRemoved()}
	for _, skip := range t.GetSkipped() {
		if s.Totals.Skipped == nil {
			s.Totals.Skipped = make(map[string]int64)
		}
		s.Totals.Skipped[SkipReason(skip.GetReason()).String()] = skip.GetCount()
	}
	return s
}

func runsFrom(list []*ddqv1.ScheduleRun) (runs []ScheduleRun) {
	for _, r := range list {
		runs = append(runs, ScheduleRun{
			Occurrence: wire.Time(r.GetOccurrenceTime()), Due: wire.Time(r.GetDue()), ID: r.GetId(), Origin: RunOrigin(r.GetOrigin()),
			Outcome: RunOutcome(r.GetOutcome()), Skipped: SkipReason(r.GetSkipped()), Count: r.GetCount(),
			Late: wire.Duration(r.GetLateMs()), Took: wire.Duration(r.GetDurationMs()),
		})
	}
	return runs
}
