package server

import (
	"fmt"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/server/newtask"
	"github.com/ddq-io/ddq/api/server/workflows"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/schedules"
	"github.com/ddq-io/ddq/api/wire"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/timetable"
)

var (
	overlapToWire = [...]ddqv1.Overlap{
		schedule.Skip: ddqv1.Overlap_OVERLAP_SKIP, schedule.BufferOne: ddqv1.Overlap_OVERLAP_BUFFER_ONE, schedule.BufferAll: ddqv1.Overlap_OVERLAP_BUFFER_ALL,
		schedule.CancelOther: ddqv1.Overlap_OVERLAP_CANCEL_OTHER, schedule.Allow: ddqv1.Overlap_OVERLAP_ALLOW,
	}
	catchUpToWire = [...]ddqv1.CatchUpPolicy{
		schedule.Last: ddqv1.CatchUpPolicy_CATCH_UP_POLICY_LAST, schedule.All: ddqv1.CatchUpPolicy_CATCH_UP_POLICY_ALL,
		schedule.None: ddqv1.CatchUpPolicy_CATCH_UP_POLICY_NONE,
	}
	phaseToWire = [...]ddqv1.ScheduleState{
		schedule.Active: ddqv1.ScheduleState_SCHEDULE_STATE_ACTIVE, schedule.Paused: ddqv1.ScheduleState_SCHEDULE_STATE_PAUSED,
		schedule.Finished: ddqv1.ScheduleState_SCHEDULE_STATE_FINISHED,
	}
	originToWire = [...]ddqv1.RunOrigin{
		schedule.ByTimetable: ddqv1.RunOrigin_RUN_ORIGIN_TIMETABLE, schedule.ByTrigger: ddqv1.RunOrigin_RUN_ORIGIN_TRIGGER,
		schedule.ByBackfill: ddqv1.RunOrigin_RUN_ORIGIN_BACKFILL,
	}
	runOutcomeToWire = [...]ddqv1.RunOutcome{
		schedule.Done: ddqv1.RunOutcome_RUN_OUTCOME_DONE, schedule.Failed: ddqv1.RunOutcome_RUN_OUTCOME_FAILED,
		schedule.Removed: ddqv1.RunOutcome_RUN_OUTCOME_REMOVED,
	}
	skipToWire = [...]ddqv1.SkipReason{
		schedule.Overlapped: ddqv1.SkipReason_SKIP_REASON_OVERLAP, schedule.Superseded: ddqv1.SkipReason_SKIP_REASON_SUPERSEDED,
		schedule.BufferFull: ddqv1.SkipReason_SKIP_REASON_BUFFER_FULL, schedule.Missed: ddqv1.SkipReason_SKIP_REASON_MISSED,
		schedule.WasPaused: ddqv1.SkipReason_SKIP_REASON_PAUSED, schedule.Excluded: ddqv1.SkipReason_SKIP_REASON_EXCLUDED,
		schedule.Refused: ddqv1.SkipReason_SKIP_REASON_REFUSED,
	}
	putToWire = [...]ddqv1.PutOutcome{
		schedules.Created: ddqv1.PutOutcome_PUT_OUTCOME_CREATED, schedules.Changed: ddqv1.PutOutcome_PUT_OUTCOME_CHANGED,
		schedules.Unchanged: ddqv1.PutOutcome_PUT_OUTCOME_UNCHANGED,
	}
)

// scheduleOf converts a schedule as it was asked for. What is not well formed is refused.
func scheduleOf(w *ddqv1.Schedule) (n schedules.Definition, e *problem.Error) {
	if w == nil {
		return n, wire.Invalid("BAD_SCHEDULE", "schedule", "is required")
	}
	if w.GetMasked() {
		return n, wire.Invalid("MASKED", "masked", "its payload was left out when it was read, and a put would take it away")
	}
	n.Topic, n.Name, n.Paused, n.Note = w.GetTopic(), w.GetName(), w.GetPaused(), w.GetNote()
	s := &n.Spec
	if s.Overlap, e = wire.ReadEnum[schedule.Overlap](overlapToWire[:], w.GetOverlap(), "overlap"); e != nil {
		return n, e
	}
	if e = readCatchUp(s, w.GetCatchUp()); e != nil {
		return n, e
	}
	s.PauseAt, s.MaxRuns, s.History = int(w.GetPauseAfterFailures()), w.GetMaxRuns(), schedules.DefaultHistory
	if w.History != nil {
		s.History = int(w.GetHistory())
	}
	s.Untracked = w.Track != nil && !w.GetTrack()
	_, s.Labels = wire.ReadAttributes(w.GetLabels(), nil)
	if e = readTimetable(s, w.GetTimetable()); e != nil {
		return n, e
	}
	if s.Audience, e = readTarget(w.GetAudience()); e != nil {
		return n, e
	}
	if w.GetWorkflow() != nil {
		s.Workflow, e = workflows.ReadRun(w.GetWorkflow(), "workflow.")
		return n, e
	}
	return n, readTemplate(&s.Template, w.GetTask())
}

func readCatchUp(s *schedule.Spec, w *ddqv1.CatchUp) (e *problem.Error) {
	if s.CatchUp, e = wire.ReadEnum[schedule.CatchUp](catchUpToWire[:], w.GetPolicy(), "catch_up.policy"); e != nil {
		return e
	}
	if s.Grace, e = wire.Span(w.GetGraceMs(), "catch_up.grace_ms"); e != nil {
		return e
	}
	s.Within, e = wire.Span(w.GetWithinMs(), "catch_up.within_ms")
	return e
}

func readTimetable(s *schedule.Spec, w *ddqv1.Timetable) (e *problem.Error) {
	t := &s.Timetable
	t.Zone, s.Calendars = w.GetZone(), w.GetCalendars()
	if s.Jitter, e = wire.Span(w.GetJitterMs(), "timetable.jitter_ms"); e != nil {
		return e
	}
	if w.GetStartTime() != nil {
		start, e := wire.Instant(w.GetStartTime(), "timetable.start_time")
		if e != nil {
			return e
		}
		t.Start = start.Time()
	}
	if w.GetEndTime() != nil {
		end, e := wire.Instant(w.GetEndTime(), "timetable.end_time")
		if e != nil {
			return e
		}
		t.End = end.Time()
	}
	for i, entry := range w.GetEntries() {
		read, e := entryOf(entry, fmt.Sprintf("timetable.entries[%d]", i))
		if e != nil {
			return e
		}
		t.Entries = append(t.Entries, read)
	}
	return nil
}

func entryOf(w *ddqv1.TimetableEntry, field string) (entry timetable.Entry, e *problem.Error) {
	switch when := w.GetWhen().(type) {
	case *ddqv1.TimetableEntry_Cron:
		if entry.Cron = when.Cron; when.Cron == "" {
			return entry, wire.Invalid("BAD_CRON", field+".cron", "is empty")
		}
	case *ddqv1.TimetableEntry_Every:
		switch when.Every.GetFrom() {
		case ddqv1.IntervalFrom_INTERVAL_FROM_UNSPECIFIED, ddqv1.IntervalFrom_INTERVAL_FROM_START:
		case ddqv1.IntervalFrom_INTERVAL_FROM_END:
			entry.FromEnd = true
		default:
			return entry, wire.Invalid("BAD_ENUM", field+".every.from", "has no value %d", when.Every.GetFrom())
		}
		if entry.Every, e = wire.Span(when.Every.GetEveryMs(), field+".every.every_ms"); e == nil && entry.Every < timetable.MinEvery {
			e = wire.Invalid("BAD_CRON", field+".every.every_ms", "must be at least %d", timetable.MinEvery.Milliseconds())
		}
	case *ddqv1.TimetableEntry_At:
		for _, at := range when.At.GetTimes() {
			ms, e := wire.Instant(at, field+".at")
			if e != nil {
				return entry, e
			}
			entry.At = append(entry.At, ms.Time())
		}
		if len(entry.At) == 0 {
			return entry, wire.Invalid("BAD_SCHEDULE", field+".at", "names no time")
		}
	default:
		return entry, wire.Invalid("BAD_SCHEDULE", field, "has neither cron nor every nor at")
	}
	return entry, e
}

// readTemplate reads a task without what makes it a certain one.
func readTemplate(t *schedule.Template, w *ddqv1.EnqueueRequest) *problem.Error {
	if w == nil {
		return wire.Invalid("BAD_SCHEDULE", "task", "is required")
	}
	for _, part := range [...]struct {
		field string
		given bool
	}{
		{"topic", w.Topic != ""}, {"id", w.Id != ""}, {"when", w.When != nil}, {"idempotency", w.Idempotency != nil}, {"payload_fingerprint", len(w.PayloadFingerprint) > 0}, {"ordering_key", w.OrderingKey != ""},
		{"expire_time", w.GetExpireTime() != nil}, {"latest_time", w.GetLatestTime() != nil},
	} {
		if part.given {
			return wire.Invalid("BAD_SCHEDULE", "task."+part.field, "is not for the task of a schedule")
		}
	}
	var read service.NewTask
	if e := newtask.Read(&read, w); e != nil {
		inner := *e
		inner.Field = "task." + e.Field
		return &inner
	}
	t.Task, t.ExpireAfter, t.Slack = read.Task, read.ExpireAfter, read.Slack
	t.Task.Trace = nil // of whoever put the schedule, and not of its runs
	return nil
}

// scheduleWire converts a schedule as it stands.
func scheduleWire(s *schedules.Status) *ddqv1.Schedule {
	history, track := int32(s.Spec.History), !s.Untracked
	w := &ddqv1.Schedule{
		Topic: s.Topic, Name: s.Name, Timetable: timetableWire(&s.Spec),
		Overlap: wire.Enum(overlapToWire[:], s.Overlap),
		CatchUp: &ddqv1.CatchUp{
			Policy: wire.Enum(catchUpToWire[:], s.CatchUp), GraceMs: store.CeilMillis(s.Grace), WithinMs: store.CeilMillis(s.Within),
		},
		PauseAfterFailures: int32(s.PauseAt), MaxRuns: s.MaxRuns, History: &history, Track: &track,
		Labels: wire.PutAttributes(s.Labels), Paused: s.Phase == schedule.Paused, Note: wire.Text(s.Note), Version: s.Version(),
	}
	w.Audience = targetWire(s.Audience)
	if s.Workflow != nil {
		w.Run = &ddqv1.Schedule_Workflow{Workflow: workflows.RunWire(s.Workflow)}
	} else {
		w.Run = &ddqv1.Schedule_Task{Task: templateWire(&s.Template)}
	}
	return w
}

func timetableWire(s *schedule.Spec) *ddqv1.Timetable {
	w := &ddqv1.Timetable{Zone: s.Timetable.Zone, Calendars: s.Calendars, JitterMs: store.CeilMillis(s.Jitter)}
	if !s.Timetable.Start.IsZero() {
		w.StartTime = wire.StampOrNil(store.Millis(s.Timetable.Start.UnixMilli()))
	}
	if !s.Timetable.End.IsZero() {
		w.EndTime = wire.StampOrNil(store.Millis(s.Timetable.End.UnixMilli()))
	}
	for _, e := range s.Timetable.Entries {
		w.Entries = append(w.Entries, entryWire(&e))
	}
	return w
}

func entryWire(e *timetable.Entry) *ddqv1.TimetableEntry {
	switch {
	case e.Cron != "":
		return &ddqv1.TimetableEntry{When: &ddqv1.TimetableEntry_Cron{Cron: e.Cron}}
	case e.Every != 0:
		every := &ddqv1.Interval{EveryMs: store.CeilMillis(e.Every), From: ddqv1.IntervalFrom_INTERVAL_FROM_START}
		if e.FromEnd {
			every.From = ddqv1.IntervalFrom_INTERVAL_FROM_END
		}
		return &ddqv1.TimetableEntry{When: &ddqv1.TimetableEntry_Every{Every: every}}
	}
	at := &ddqv1.Instants{}
	for _, instant := range e.At {
		at.Times = append(at.Times, wire.StampOrNil(store.Millis(instant.UnixMilli())))
	}
	return &ddqv1.TimetableEntry{When: &ddqv1.TimetableEntry_At{At: at}}
}

func templateWire(t *schedule.Template) *ddqv1.EnqueueRequest {
	w := &ddqv1.EnqueueRequest{
		Payload: t.Task.Payload, Attributes: wire.PutAttributes(t.Task.Attributes),
		VisibilityTimeoutMs: store.CeilMillis(t.Task.Visibility), HandlerTimeoutMs: store.CeilMillis(t.Task.HandlerTimeout),
		Backoff: wire.PutBackoff(t.Task.Backoff),
	}
	if t.Task.MaxRetries >= 0 {
		retries := int32(t.Task.MaxRetries)
		w.MaxRetries = &retries
	}
	if r := t.Task.Traits; r != nil {
		w.Priority, w.FairnessKey, w.FairnessWeight, w.RateKey, w.ConcurrencyKey = int32(r.Priority), r.FairnessKey, int32(r.FairnessWeight), r.RateKey, r.ConcurrencyKey
	}
	if t.ExpireAfter > 0 {
		w.Expiry = &ddqv1.EnqueueRequest_ExpireAfter{ExpireAfter: durationWire(t.ExpireAfter)}
	}
	if t.Slack > 0 {
		w.Spread = &ddqv1.EnqueueRequest_Slack{Slack: durationWire(t.Slack)}
	}
	return w
}
