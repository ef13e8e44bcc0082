package client

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/api/client/internal/sender"
	"github.com/ddq-io/ddq/api/client/internal/wire"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// Schedule makes tasks by a timetable: the union of Cron, Every and At, of which it needs
// one. An instant that two of them name is one occurrence.
type Schedule struct {
	Topic string
	Name  string // 1 to 128 characters of visible ASCII, unique in the topic

	// Cron are expressions of 5 fields (minute, hour, day of month, month, day of week), of 6
	// with seconds first, or ones such as @daily. H stands for a number that follows from Name.
	Cron []string

	// Every is elapsed time, at least 1s. It counts from Start, or from when the schedule was
	// created. With EveryFromEnd it counts from the end of the run before, and is all there is.
	Every        time.Duration
	EveryFromEnd bool
	AlsoEvery    []time.Duration // more of them

	At []time.Time // up to 100 single instants

	Zone      string        // by whose clock Cron is read, such as Europe/Berlin; UTC when empty
	Start     time.Time     // no occurrence is before it
	End       time.Time     // no occurrence is after it
	Calendars []string      // what falls into one of these is skipped, see PutCalendar; at most 20
	Jitter    time.Duration // a run is due up to so much later, always the same for the same occurrence

	// Audience makes a run a task for each of its recipients, made of Task. Nil: a run is one
	// task.
	Audience *AudienceTarget

	// Task is what a run is: without ID, Topic, due time, Expires, Latest, OrderingKey and
	// Idempotency. Its payload has at most 512 KiB, its slack at most 24h.
	Task Task

	// Workflow is what a run is instead of a Task: without Topic and ID, which begins with Name;
	// Name has no '/' then. The run is over when the workflow has ended. Nil: there is the Task.
	Workflow *Workflow

	Overlap            Overlap
	CatchUp            CatchUp
	Grace              time.Duration // how late an occurrence is not missed: 1s to 24h; 0 means 1m
	Within             time.Duration // missed occurrences that are older are not caught up with; 0: no bound
	PauseAfterFailures int           // in a row; 0: never
	MaxRuns            int64         // of the timetable; 0: no bound
	History            *int          // runs and skips that are remembered: 0 to 100; 10 when nil
	Untracked          bool          // with OverlapAllow: ends of runs are not told to the schedule, which makes them cheaper

	Labels map[string]string // at most 8, by which schedules are listed

	// Paused makes a new schedule begin paused. PutSchedule leaves one that is there as it
	// is: see PauseSchedule.
	Paused bool
	Note   string // why it is paused, or was resumed

	Version int64 // rises with every put that changed it; PutSchedule does not look at it
	Masked  bool  // the payload, or the workflow, was left out, since the caller may not see it; PutSchedule refuses it
}

// Overlap is what becomes of an occurrence while a run is open.
type Overlap int32

// What may become of it. The zero Overlap is OverlapSkip for PutSchedule, and the
// schedule's own for TriggerSchedule.
const (
	OverlapSkip        Overlap = Overlap(ddqv1.Overlap_OVERLAP_SKIP)         // it is skipped
	OverlapBufferOne   Overlap = Overlap(ddqv1.Overlap_OVERLAP_BUFFER_ONE)   // it waits; a later one takes its place
	OverlapBufferAll   Overlap = Overlap(ddqv1.Overlap_OVERLAP_BUFFER_ALL)   // it waits in line, with up to 1,000 others
	OverlapCancelOther Overlap = Overlap(ddqv1.Overlap_OVERLAP_CANCEL_OTHER) // as OverlapBufferOne; the open run is deleted, or asked to cancel
	OverlapAllow       Overlap = Overlap(ddqv1.Overlap_OVERLAP_ALLOW)        // its run is made
)

// String returns the word of the command line, such as "buffer_one".
func (o Overlap) String() string { return wire.Word(ddqv1.Overlap(o).String(), "OVERLAP_") }

// CatchUp is what becomes of occurrences that nobody decided in time, such as those of an
// outage.
type CatchUp int32

// What may become of them. The zero CatchUp is CatchUpLast.
const (
	CatchUpLast CatchUp = CatchUp(ddqv1.CatchUpPolicy_CATCH_UP_POLICY_LAST) // the latest one is made, due now
	CatchUpAll  CatchUp = CatchUp(ddqv1.CatchUpPolicy_CATCH_UP_POLICY_ALL)  // the latest 1,000 are made, in order
	CatchUpNone CatchUp = CatchUp(ddqv1.CatchUpPolicy_CATCH_UP_POLICY_NONE) // none is made
)

// String returns the word of the command line, such as "last".
func (p CatchUp) String() string {
	return wire.Word(ddqv1.CatchUpPolicy(p).String(), "CATCH_UP_POLICY_")
}

func (s *Schedule) wire() (*ddqv1.Schedule, *Error) {
	var task sender.Request
	template := s.Task
	template.Due, template.Delay = time.Time{}, 0
	if !s.Task.Due.IsZero() || s.Task.Delay != 0 {
		return nil, invalid("task.when", "the task of a schedule has no due time: the timetable says when")
	}
	if err := fill(&task, &template); err != nil {
		err.Field = "task." + err.Field
		return nil, err
	}
	w := &ddqv1.Schedule{
		Topic: s.Topic, Name: s.Name, Timetable: s.timetable(),
		Overlap:            ddqv1.Overlap(s.Overlap),
		PauseAfterFailures: wire.Int32(s.PauseAfterFailures), MaxRuns: s.MaxRuns,
		Paused: s.Paused, Note: s.Note, Masked: s.Masked,
	}
	if err := s.wireRun(w, &task.Wire); err != nil {
		return nil, err
	}
	w.Audience = s.Audience.wire()
	if s.CatchUp != 0 || s.Grace != 0 || s.Within != 0 {
		w.CatchUp = &ddqv1.CatchUp{Policy: ddqv1.CatchUpPolicy(s.CatchUp), GraceMs: wire.Millis(s.Grace), WithinMs: wire.Millis(s.Within)}
	}
	if s.History != nil {
		w.History = new(wire.Int32(*s.History))
	}
	if s.Untracked {
		w.Track = new(false)
	}
	if len(s.Labels) > 0 {
		w.Labels = wire.Attributes(s.Labels)
	}
	return w, nil
}

// wireRun says what a run is.
func (s *Schedule) wireRun(w *ddqv1.Schedule, task *ddqv1.EnqueueRequest) *Error {
	if s.Workflow == nil {
		w.Run = &ddqv1.Schedule_Task{Task: task}
		return nil
	}
	if len(task.Payload) > 0 {
		return invalid("task", "a run is a task or a workflow")
	}
	flow, err := s.Workflow.wire()
	if err != nil {
		err.Field = "workflow." + err.Field
		return err
	}
	w.Run = &ddqv1.Schedule_Workflow{Workflow: flow}
	return nil
}

func (s *Schedule) timetable() *ddqv1.Timetable {
	t := &ddqv1.Timetable{Zone: s.Zone, Calendars: s.Calendars, StartTime: wire.Stamp(s.Start), EndTime: wire.Stamp(s.End), JitterMs: wire.Millis(s.Jitter)}
	for _, expression := range s.Cron {
		t.Entries = append(t.Entries, &ddqv1.TimetableEntry{When: &ddqv1.TimetableEntry_Cron{Cron: expression}})
	}
	if s.Every != 0 || s.EveryFromEnd {
		every := &ddqv1.Interval{EveryMs: wire.Millis(s.Every)}
		if s.EveryFromEnd {
			every.From = ddqv1.IntervalFrom_INTERVAL_FROM_END
		}
		t.Entries = append(t.Entries, &ddqv1.TimetableEntry{When: &ddqv1.TimetableEntry_Every{Every: every}})
	}
	for _, d := range s.AlsoEvery {
		t.Entries = append(t.Entries, &ddqv1.TimetableEntry{When: &ddqv1.TimetableEntry_Every{Every: &ddqv1.Interval{EveryMs: wire.Millis(d)}}})
	}
	if len(s.At) > 0 {
		at := &ddqv1.Instants{}
		for _, instant := range s.At {
			at.Times = append(at.Times, timestamppb.New(instant))
		}
		t.Entries = append(t.Entries, &ddqv1.TimetableEntry{When: &ddqv1.TimetableEntry_At{At: at}})
	}
	return t
}

func scheduleFrom(w *ddqv1.Schedule) Schedule {
	s := Schedule{
		Topic: w.GetTopic(), Name: w.GetName(), Task: templateFrom(w.GetTask()), Workflow: WorkflowOf(w.GetWorkflow()), Overlap: Overlap(w.GetOverlap()),
		CatchUp: CatchUp(w.GetCatchUp().GetPolicy()), Grace: wire.Duration(w.GetCatchUp().GetGraceMs()), Within: wire.Duration(w.GetCatchUp().GetWithinMs()),
		PauseAfterFailures: int(w.GetPauseAfterFailures()), MaxRuns: w.GetMaxRuns(),
		Labels: wire.AttributesFrom(w.GetLabels()), Paused: w.GetPaused(), Note: w.GetNote(), Version: w.GetVersion(),
		Masked: w.GetMasked(),
	}
	if w == nil {
		return s
	}
	s.Audience = targetFrom(w.GetAudience())
	s.Untracked = w.Track != nil && !w.GetTrack()
	if w.History != nil {
		s.History = new(int(w.GetHistory()))
	}
	t := w.GetTimetable()
	s.Calendars = t.GetCalendars()
	s.Zone, s.Start, s.End, s.Jitter = t.GetZone(), wire.Time(t.GetStartTime()), wire.Time(t.GetEndTime()), wire.Duration(t.GetJitterMs())
	for _, e := range t.GetEntries() {
		switch when := e.GetWhen().(type) {
		case *ddqv1.TimetableEntry_Cron:
			s.Cron = append(s.Cron, when.Cron)
		case *ddqv1.TimetableEntry_Every:
			if s.Every == 0 {
				s.Every, s.EveryFromEnd = wire.Duration(when.Every.GetEveryMs()), when.Every.GetFrom() == ddqv1.IntervalFrom_INTERVAL_FROM_END
			} else {
				s.AlsoEvery = append(s.AlsoEvery, wire.Duration(when.Every.GetEveryMs()))
			}
		case *ddqv1.TimetableEntry_At:
			for _, instant := range when.At.GetTimes() {
				s.At = append(s.At, wire.Time(instant))
			}
		}
	}
	return s
}

// templateFrom reads what runs of a schedule are.
func templateFrom(w *ddqv1.EnqueueRequest) Task {
	t := Task{
		encoded: true,
		Payload: w.GetPayload(), Attributes: wire.AttributesFrom(w.GetAttributes()), Backoff: backoffFrom(w.GetBackoff()),
		VisibilityTimeout: wire.Duration(w.GetVisibilityTimeoutMs()), HandlerTimeout: wire.Duration(w.GetHandlerTimeoutMs()),
		Priority: int(w.GetPriority()), FairnessKey: w.GetFairnessKey(), FairnessWeight: int(w.GetFairnessWeight()),
		RateKey: w.GetRateKey(), ConcurrencyKey: w.GetConcurrencyKey(), ExpireAfter: wire.Span(w.GetExpireAfter()),
		Slack: wire.Span(w.GetSlack()),
	}
	if w != nil && w.MaxRetries != nil {
		t.MaxRetries = new(int(w.GetMaxRetries()))
	}
	return t
}
