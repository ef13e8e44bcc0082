package schedule

import (
	"slices"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/timetable"
)

// Env is what a step knows besides the schedule.
type Env struct {
	Now      store.Millis         // the store's clock
	Lead     time.Duration        // how far ahead runs are made
	Table    *timetable.Timetable // of the spec; of an Edit, of the one before
	Excluded func(time.Time) bool // by calendars; of an Edit, those of the spec before
	Known    Calendars            // of which Keep makes Excluded
	Refused  bool                 // the topic takes no task of this schedule now
	Requeued []string             // of the dead letters that the step was to discard, those that somebody has requeued

	// Place says where between two times a task is needed least; nil: at the first.
	Place func(earliest, latest store.Millis) store.Millis
}

// Event is something that happens to a schedule; nil is that its time to wake came.
type Event interface{ event() }

// Ended says that the task of a run ended for good.
type Ended struct {
	ID      string
	Outcome Outcome
	Dead    bool // Removed: it is a dead letter
	At      store.Millis
	Started store.Millis
}

// Requeued says that the task of a run that had ended is pending again, or its workflow goes on.
type Requeued struct{ ID string }

// Begun says that a run which a step wanted to take back is not as it was made: a worker has or had it, or somebody moved it.
type Begun struct{ ID string }

// Watched says that the runs of Effects.Doubt were compared with their tasks: what had ended
// was told before.
type Watched struct{}

// Edit gives the schedule another spec. The occurrences so far keep their runs, if those are due.
type Edit struct {
	Spec     Spec
	Table    *timetable.Timetable // of the new spec
	Excluded func(time.Time) bool // by its calendars; nil: nothing
	Anew     bool                 // intervals count from now
}

// Pause stops the schedule from making runs.
type Pause struct{ By, Note string }

// Resume lets it go on. What was named in between is skipped.
type Resume struct{ By, Note string }

// Trigger makes a run outside the timetable, due now, under an overlap policy of its own.
// The same request again changes nothing.
type Trigger struct {
	Request string
	Overlap Overlap
}

// Delete ends the schedule. Runs that are open go on, unless they are cancelled.
type Delete struct{ CancelOpen bool }

// StartBackfill makes runs of the occurrences of a range, both ends included, due when they
// are made.
type StartBackfill struct {
	ID       string
	From, To store.Millis
	Overlap  Overlap // BufferAll or Allow
	Total    int64   // see Count
}

// CancelBackfill ends a backfill. The runs that it made go on.
type CancelBackfill struct{ ID string }

func (Ended) event()          {}
func (Requeued) event()       {}
func (Begun) event()          {}
func (Watched) event()        {}
func (Edit) event()           {}
func (Pause) event()          {}
func (Resume) event()         {}
func (Trigger) event()        {}
func (StartBackfill) event()  {}
func (CancelBackfill) event() {}
func (Delete) event()         {}

// Effects are what is to be changed in the commit that stores the schedule.
type Effects struct {
	Make       []Make
	Remove     []store.Remove // runs made ahead. One that a worker has or had, or that is due at another time by now, fails the commit: the answer is Begun
	Cancel     []string       // asked to end when running, deleted when pending
	CancelWalk []string       // the same of runs that are walks
	CancelFlow []string       // the same of runs that are workflows, by their ids
	Discard    []string       // dead letters of runs that were replaced: they are deleted before the commit, which nobody repeats
	Skips      []Past         // decided against in this step
	Wake       store.Millis   // 0: only an event wakes it
	Gone       bool           // the cell is deleted
	Paused     bool           // because of failures
	Overlaps   bool           // an occurrence was decided against, or put off, because of a run that is open
	Doubt      []string       // runs that have been open for so long that their tasks are to be looked at

	RunOpen string // a trigger was refused because of this run
	Full    bool   // a trigger was refused: as many runs are open, or wait, as can
	Behind  bool   // an edit, a pause or a trigger was not made: more is to be decided before it than a commit has room for. It is to come again
	Over    bool   // a pause, resume, trigger or backfill was refused: the schedule is finished, perhaps since an event before it in the step
}

// refuses reports whether the step refused what a user asked for.
func (out *Effects) refuses() bool { return out.RunOpen != "" || out.Full || out.Over }

// Make is a task that is to be made from the template.
type Make struct {
	ID string
	Run
	of *Spec // that of before an edit in the same step; nil: the schedule's
}

// drop reports whether the step makes a run, which it does not do then.
func (out *Effects) drop(id string) bool {
	i := slices.IndexFunc(out.Make, func(m Make) bool { return m.ID == id })
	if i < 0 {
		return false
	}
	out.Make = slices.Delete(out.Make, i, i+1)
	return true
}

// keepSpec has the runs that are decided be made by the spec of before an edit.
func (out *Effects) keepSpec(was Spec) {
	for i := range out.Make {
		if m := &out.Make[i]; m.of == nil {
			m.of = &was
		}
	}
}
