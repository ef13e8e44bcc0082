package schedule

import (
	"slices"
	"time"

	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/timetable"
)

// Limits of one schedule.
const (
	MaxOpen    = 1000 // runs that are open, of a schedule whose runs may overlap
	MaxWaiting = 1000 // occurrences that wait for the run before them
	MaxCaught  = 1000 // missed occurrences that are made one after the other
	MaxHistory = 100
	MaxDead    = 1000 // runs that are known again when their dead letters are requeued

	MaxBackfills = 10     // that run or wait
	MaxBackfill  = 10_000 // occurrences of one

	// Lead is how long before its time a run is made, and a schedule wakes. Where many wake
	// soon, owners make runs earlier than that. Whoever makes a step says so, owners
	// and calls of users alike: else one would take back what the other has made.
	Lead = 5 * time.Second

	perStep    = 10_000 // occurrences that one step decides against
	makesAStep = 100    // runs that one step makes
	requests   = 20     // triggers that are known again
)

// Overlap is what becomes of an occurrence while a run is open.
type Overlap uint8

const (
	Skip        Overlap = iota + 1 // it is skipped
	BufferOne                      // it waits; a later one takes its place
	BufferAll                      // it waits in line
	CancelOther                    // as BufferOne; the open run is asked to end
	Allow                          // its run is made
)

// CatchUp is what becomes of occurrences that nobody decided in time.
type CatchUp uint8

const (
	Last CatchUp = iota + 1 // the latest one is made, due now
	All                     // each is made, in order
	None                    // none is made
)

// Spec is what the author of a schedule decides.
type Spec struct {
	Timetable timetable.Spec
	Calendars []string      // that leave occurrences out
	Jitter    time.Duration // by which due times are spread, see timetable.Jitter
	Overlap   Overlap
	CatchUp   CatchUp
	Grace     time.Duration // how late an occurrence is decided without being missed
	Within    time.Duration // older ones are not caught up with; 0: no bound
	MaxRuns   int64         // that the timetable makes; 0: no bound
	PauseAt   int           // failures in a row after which it pauses; 0: never
	History   int           // how many runs and skips are remembered
	Untracked bool          // ends are not told: with Allow only
	Template  Template
	Labels    []store.Attribute // for people, who look for schedules by them
	Audience  *Target           // nil: a run is one task, or a workflow

	// Workflow is what a run is instead of a task; nil: there is the template.
	Workflow *graph.Definition
}

// Target is an audience of which each recipient gets a task in a run. What its fields mean is
// with audience.Order.
type Target struct {
	Name       string
	Kind       string
	Window     time.Duration
	Grain      time.Duration
	SpreadFrom int64
	Quiet      uint8 // an audience.QuietPolicy
	Rotate     bool
	Untracked  bool // a run is over when its tasks are made
}

// Template is what the tasks of a schedule have in common.
type Template struct {
	// Task has payload, attributes, visibility, handler timeout, retries, backoff and
	// traits, no ordering key among them. The rest of it is not looked at.
	Task        store.Task
	ExpireAfter time.Duration // from the due time; 0: never
	Slack       time.Duration // by which a task may be later, where it is needed least
}

// Phase is where a schedule is in its life.
type Phase uint8

const (
	Active Phase = iota + 1
	Paused
	Finished // no occurrence is left, and no run is open
)

// Schedule is the whole of what is stored of a schedule.
type Schedule struct {
	Spec
	Name string // the key of its cell
	Life uint64 // random, of this creation: ids follow from it

	Created  store.Millis
	Phase    Phase
	PausedBy string // who, or what
	Note     string
	Edits    int64        // that changed the spec
	Anchor   store.Millis // from when intervals count that have no start

	Decided   store.Millis   // occurrences up to this one are decided
	Early     []store.Millis // occurrences to come whose run has begun or ended already
	Paused    Span           // when the schedule was paused last: what was named then is skipped
	Made      int64          // runs made by the timetable
	Open      []Run          // in the order in which they were made
	Waiting   []Occurrence   // that wait for the end of a run, in order
	Failures  int            // in a row
	Totals    map[Outcome]int64
	Skipped   map[Reason]int64
	History   []Past // the last ones, oldest first
	Dead      []Past // runs that may be open again, whatever the history remembers: their dead letters are requeued
	Requests  []string
	Backfills []Backfill // in the order in which they were asked for

	Taken    int64          // number of the last parcel that was taken
	Watched  store.Millis   // when open runs were compared with their tasks
	Recalled []store.Millis // occurrences whose run was taken back, which is yet to be told
}

// Span is behind From and up to Until. That of a pause which has not ended has no Until yet.
type Span struct{ From, Until store.Millis }

func (s Span) has(at store.Millis) bool { return s.From < at && at <= s.Until }

// Origin is what named an occurrence.
type Origin uint8

const (
	ByTimetable Origin = iota + 1
	ByTrigger
	ByBackfill
)

// Occurrence is an instant at which something is to be done.
type Occurrence struct {
	At     store.Millis
	Origin Origin
	N      uint64 // tells those of one instant and origin apart
}

// Run is what was made of an occurrence, and has not ended for good.
type Run struct {
	Occurrence
	Due   store.Millis
	Begun bool // a worker had it, or somebody moved it, before its time came: it cannot be taken back
	Walk  bool // through an audience: no task, but a cell that makes them
	Flow  bool // a workflow

	Replaced bool // it was asked to end, because another takes its place: nobody is to look at its dead letter
}

// Backfill is a range of occurrences that runs are made of once more, in order.
type Backfill struct {
	ID       string // of its author; the same again changes nothing
	From, To store.Millis
	Overlap  Overlap      // BufferAll: one after the other; Allow
	Done     store.Millis // occurrences up to this one are decided
	Made     int64
	Total    int64 // occurrences of the range when it was asked for
}

// Outcome is how a run ended.
type Outcome uint8

const (
	Done    Outcome = iota + 1
	Failed          // dead, expired
	Removed         // deleted, cancelled
)

// Reason is why no run was made of an occurrence.
type Reason uint8

const (
	Overlapped Reason = iota + 1 // a run was open
	Superseded                   // a later one took its place
	BufferFull                   // too many wait
	Missed                       // nobody decided it in time
	WasPaused
	Excluded // a calendar leaves it out
	Refused  // the topic took no task

	lastReason = Refused
)

var reasonNames = [...]string{"", "overlap", "superseded", "buffer_full", "missed", "paused", "excluded", "refused"}

func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "unknown"
}

// Past is a run that ended, or skips of one reason in a row.
type Past struct {
	Occurrence
	Due     store.Millis
	Flow    bool    // of a run: it was a workflow
	Outcome Outcome // of a run
	Reason  Reason  // of skips
	Count   int64   // of skips; Occurrence is the last of them
	Started store.Millis
	Ended   store.Millis
}

// SkippedSince reports whether an occurrence of a time or later was skipped, as far back as the
// history goes; of a schedule without a history, whether ever one was.
func (s *Schedule) SkippedSince(at store.Millis) bool {
	if s.Spec.History == 0 {
		return len(s.Skipped) > 0
	}
	return slices.ContainsFunc(s.History, func(h Past) bool { return h.Reason != 0 && h.At >= at })
}

// Table is the timetable of the spec.
func (s *Schedule) Table() (*timetable.Timetable, error) {
	return timetable.New(s.Timetable, s.Name, s.Anchor.Time())
}

// Anew reports whether intervals count from the edit that puts another spec in the place of
// this one: another length does, another start, too.
func (s *Spec) Anew(other *Spec) bool {
	same := func(a, b timetable.Entry) bool { return a.Every == b.Every }
	return !s.Timetable.Start.Equal(other.Timetable.Start) || !slices.EqualFunc(s.Timetable.Entries, other.Timetable.Entries, same)
}
