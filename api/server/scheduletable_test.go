package server

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// cron is a timetable of one expression.
func cron(expression string) *ddqv1.Timetable {
	return &ddqv1.Timetable{Entries: []*ddqv1.TimetableEntry{{When: &ddqv1.TimetableEntry_Cron{Cron: expression}}}}
}

func every(d time.Duration) *ddqv1.TimetableEntry {
	return &ddqv1.TimetableEntry{When: &ddqv1.TimetableEntry_Every{Every: &ddqv1.Interval{EveryMs: d.Milliseconds()}}}
}

func fromEnd(d time.Duration) *ddqv1.TimetableEntry {
	return &ddqv1.TimetableEntry{When: &ddqv1.TimetableEntry_Every{Every: &ddqv1.Interval{EveryMs: d.Milliseconds(), From: ddqv1.IntervalFrom_INTERVAL_FROM_END}}}
}

func at(times ...time.Time) *ddqv1.TimetableEntry {
	list := &ddqv1.Instants{}
	for _, t := range times {
		list.Times = append(list.Times, timestamppb.New(t))
	}
	return &ddqv1.TimetableEntry{When: &ddqv1.TimetableEntry_At{At: list}}
}

// nightly is a schedule as a new user would put it.
func nightly(edit func(*ddqv1.Schedule)) *ddqv1.Schedule {
	s := &ddqv1.Schedule{
		Topic: "report", Name: "nightly", Timetable: cron("30 2 * * *"), Run: &ddqv1.Schedule_Task{Task: &ddqv1.EnqueueRequest{Payload: []byte("go")}},
	}
	if edit != nil {
		edit(s)
	}
	return s
}

// put makes a call that puts nightly with a change.
func put(edit func(*ddqv1.Schedule)) func(r *rig) error {
	return func(r *rig) error {
		_, err := r.schedules.PutSchedule(r.Context(), &ddqv1.PutScheduleRequest{Schedule: nightly(edit)})
		return err
	}
}

// timed puts nightly with entries of its timetable.
func timed(entries ...*ddqv1.TimetableEntry) func(r *rig) error {
	return put(func(s *ddqv1.Schedule) { s.Timetable.Entries = entries })
}

// template puts nightly with a change of its task.
func template(edit func(*ddqv1.EnqueueRequest)) func(r *rig) error {
	return put(func(s *ddqv1.Schedule) { edit(s.GetTask()) })
}

// after makes a call once nightly is there.
func after(edit func(*ddqv1.Schedule), call func(r *rig) error) func(r *rig) error {
	return func(r *rig) error {
		must(r, put(edit)(r))
		return call(r)
	}
}

func putIf(version int64) func(r *rig) error {
	return func(r *rig) error {
		_, err := r.schedules.PutSchedule(r.Context(), &ddqv1.PutScheduleRequest{Schedule: nightly(nil), IfVersion: &version})
		return err
	}
}

func trigger(edit func(*ddqv1.TriggerScheduleRequest)) func(r *rig) error {
	return func(r *rig) error {
		req := &ddqv1.TriggerScheduleRequest{Topic: "report", Name: "nightly"}
		if edit != nil {
			edit(req)
		}
		_, err := r.schedules.TriggerSchedule(r.Context(), req)
		return err
	}
}

func backfill(from, to time.Duration, edit func(*ddqv1.BackfillScheduleRequest)) func(r *rig) error {
	return func(r *rig) error {
		req := &ddqv1.BackfillScheduleRequest{
			Topic: "report", Name: "nightly", From: timestamppb.New(time.Now().Add(from)), To: timestamppb.New(time.Now().Add(to)),
		}
		if edit != nil {
			edit(req)
		}
		_, err := r.schedules.BackfillSchedule(r.Context(), req)
		return err
	}
}

func preview(req *ddqv1.PreviewScheduleRequest) func(r *rig) error {
	return func(r *rig) error {
		_, err := r.schedules.PreviewSchedule(r.Context(), req)
		return err
	}
}

// inAn is a moment so far ahead of now, in a bubble: a test begins when a bubble does.
func inAn(d time.Duration) *timestamppb.Timestamp {
	return timestamppb.New(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(d))
}

func forecastOf(req *ddqv1.ForecastRequest) func(r *rig) error {
	return func(r *rig) error {
		_, err := r.schedules.Forecast(r.Context(), req)
		return err
	}
}

func dryRunOf(req *ddqv1.DryRunRequest) func(r *rig) error {
	return func(r *rig) error {
		_, err := r.schedules.DryRun(r.Context(), req)
		return err
	}
}

var existing = &ddqv1.PreviewScheduleRequest_Existing{Existing: &ddqv1.ScheduleName{Name: "nightly"}}

var weekend = &ddqv1.Calendar{Name: "weekend", Weekdays: []string{"SAT", "sun"}}

func putCalendar(c *ddqv1.Calendar, ifVersion *int64) func(r *rig) error {
	return func(r *rig) error {
		_, err := r.schedules.PutCalendar(r.Context(), &ddqv1.PutCalendarRequest{Calendar: c, IfVersion: ifVersion})
		return err
	}
}

// scheduleRefusals are the rows of the table of bad input of schedules.
var scheduleRefusals = []refusal{
	// Names, labels, and what a schedule has to have.
	{"no schedule", func(r *rig) error {
		_, err := r.schedules.PutSchedule(r.Context(), &ddqv1.PutScheduleRequest{})
		return err
	}, codes.InvalidArgument, "BAD_SCHEDULE", "schedule", "", 0},
	{"no name", put(func(s *ddqv1.Schedule) { s.Name = "" }), codes.InvalidArgument, "BAD_NAME", "name", "", 0},
	{"name with a space", put(func(s *ddqv1.Schedule) { s.Name = "night ly" }), codes.InvalidArgument, "BAD_NAME", "name", "", 0},
	{"name of bytes", put(func(s *ddqv1.Schedule) { s.Name = "n\xff" }), codes.InvalidArgument, "BAD_NAME", "name", "", 0},
	{"long name", put(func(s *ddqv1.Schedule) { s.Name = strings.Repeat("n", 129) }), codes.InvalidArgument, "BAD_NAME", "name", "", 0},
	{"schedule without topic", put(func(s *ddqv1.Schedule) { s.Topic = "" }), codes.InvalidArgument, "BAD_NAME", "topic", "", 0},
	{"schedule of a malformed topic", put(func(s *ddqv1.Schedule) { s.Topic = "~a" }), codes.InvalidArgument, "BAD_NAME", "topic", "", 0},
	{"no task", put(func(s *ddqv1.Schedule) { s.Run = nil }), codes.InvalidArgument, "BAD_SCHEDULE", "task", "", 0},
	{"read without its payload", put(func(s *ddqv1.Schedule) { s.Masked = true }), codes.InvalidArgument, "MASKED", "masked", "", 0},
	{"no timetable", put(func(s *ddqv1.Schedule) { s.Timetable = nil }), codes.InvalidArgument, "BAD_SCHEDULE", "timetable.entries", "", 0},
	{"empty entry", timed(&ddqv1.TimetableEntry{}), codes.InvalidArgument, "BAD_SCHEDULE", "timetable.entries[0]", "", 0},
	{"no instants", timed(at()), codes.InvalidArgument, "BAD_SCHEDULE", "timetable.entries[0].at", "", 0},
	{"nine labels", put(func(s *ddqv1.Schedule) {
		for i := range 9 {
			s.Labels = append(s.Labels, &ddqv1.Attribute{Key: fmt.Sprint(i)})
		}
	}), codes.InvalidArgument, "BAD_SCHEDULE", "labels", "", 0},
	{"label twice", put(func(s *ddqv1.Schedule) { s.Labels = []*ddqv1.Attribute{{Key: "a"}, {Key: "a"}} }), codes.InvalidArgument, "BAD_SCHEDULE", "labels", "", 0},
	{"note of bytes", put(func(s *ddqv1.Schedule) { s.Note = "\xff" }), codes.InvalidArgument, "BAD_SCHEDULE", "note", "", 0},

	// Timetables.
	{"cron that does not parse", put(func(s *ddqv1.Schedule) { s.Timetable = cron("61 * * * *") }), codes.InvalidArgument, "BAD_CRON", "timetable.entries[0].cron", "", 0},
	{"empty cron", put(func(s *ddqv1.Schedule) { s.Timetable = cron("") }), codes.InvalidArgument, "BAD_CRON", "timetable.entries[0].cron", "", 0},
	{"zone in a cron", put(func(s *ddqv1.Schedule) { s.Timetable = cron("TZ=UTC * * * * *") }), codes.InvalidArgument, "BAD_CRON", "timetable.entries[0].cron", "", 0},
	{"endless cron", put(func(s *ddqv1.Schedule) { s.Timetable = cron(strings.Repeat("1,", 5000) + "1 * * * *") }), codes.InvalidArgument, "BAD_CRON", "timetable.entries[0].cron", "", 0},
	{"under a second", timed(every(999 * time.Millisecond)), codes.InvalidArgument, "BAD_CRON", "timetable.entries[0].every.every_ms", "", 0},
	{"negative interval", timed(every(-time.Hour)), codes.InvalidArgument, "BAD_CRON", "timetable.entries[0].every.every_ms", "", 0},
	{"21 entries", timed(func() (all []*ddqv1.TimetableEntry) {
		for range 21 {
			all = append(all, every(time.Hour))
		}
		return all
	}()...), codes.InvalidArgument, "BAD_CRON", "timetable.entries", "", 0},
	{"101 instants", timed(at(func() (all []time.Time) {
		for i := range 101 {
			all = append(all, time.Date(2030, 1, 1, i, 0, 0, 0, time.UTC))
		}
		return all
	}()...)), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "timetable.entries[0].at", "", 0},
	{"30 February", put(func(s *ddqv1.Schedule) { s.Timetable = cron("0 0 30 2 *") }), codes.InvalidArgument, "NEVER_FIRES", "timetable", "", 0},
	{"instants of the past", timed(at(time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC))), codes.InvalidArgument, "NEVER_FIRES", "timetable", "", 0},
	{"end before start", put(func(s *ddqv1.Schedule) {
		s.Timetable.StartTime, s.Timetable.EndTime = timestamppb.New(time.Now().Add(time.Hour)), timestamppb.New(time.Now())
	}), codes.InvalidArgument, "NEVER_FIRES", "timetable.end_time", "", 0},
	{"end before the first", put(func(s *ddqv1.Schedule) { s.Timetable.EndTime = timestamppb.New(time.Now().Add(time.Second)) }), codes.InvalidArgument, "NEVER_FIRES", "timetable", "", 0},
	{"unknown zone", put(func(s *ddqv1.Schedule) { s.Timetable.Zone = "Berlin" }), codes.InvalidArgument, "BAD_ZONE", "timetable.zone", "", 0},
	{"local zone", put(func(s *ddqv1.Schedule) { s.Timetable.Zone = "Local" }), codes.InvalidArgument, "BAD_ZONE", "timetable.zone", "", 0},
	{"zone of this machine", put(func(s *ddqv1.Schedule) { s.Timetable.Zone = "localtime" }), codes.InvalidArgument, "BAD_ZONE", "timetable.zone", "", 0},
	{"zone with leap seconds", put(func(s *ddqv1.Schedule) { s.Timetable.Zone = "right/Europe/Berlin" }), codes.InvalidArgument, "BAD_ZONE", "timetable.zone", "", 0},
	{"offset", put(func(s *ddqv1.Schedule) { s.Timetable.Zone = "+02:00" }), codes.InvalidArgument, "BAD_ZONE", "timetable.zone", "", 0},
	{"time of before 1970", put(func(s *ddqv1.Schedule) { s.Timetable.StartTime = &timestamppb.Timestamp{Seconds: -1} }), codes.InvalidArgument, "BAD_TIME", "timetable.start_time", "", 0},

	// Policies and numbers.
	{"wide jitter", put(func(s *ddqv1.Schedule) { s.Timetable.JitterMs = 13 * hour * 1000 }), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "timetable.jitter_ms", "", 0},
	{"negative jitter", put(func(s *ddqv1.Schedule) { s.Timetable.JitterMs = -1 }), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "timetable.jitter_ms", "", 0},
	{"long history", put(func(s *ddqv1.Schedule) { s.History = proto.Int32(101) }), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "history", "", 0},
	{"short grace", put(func(s *ddqv1.Schedule) { s.CatchUp = &ddqv1.CatchUp{GraceMs: 999} }), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "catch_up.grace_ms", "", 0},
	{"long grace", put(func(s *ddqv1.Schedule) { s.CatchUp = &ddqv1.CatchUp{GraceMs: 25 * hour * 1000} }), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "catch_up.grace_ms", "", 0},
	{"negative within", put(func(s *ddqv1.Schedule) { s.CatchUp = &ddqv1.CatchUp{WithinMs: -1} }), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "catch_up.within_ms", "", 0},
	{"negative runs", put(func(s *ddqv1.Schedule) { s.MaxRuns = -1 }), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "max_runs", "", 0},
	{"negative failures", put(func(s *ddqv1.Schedule) { s.PauseAfterFailures = -1 }), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "pause_after_failures", "", 0},
	{"negative number of schedules", created("report", &ddqv1.TopicPolicy{MaxSchedules: proto.Int64(-1)}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "policy.max_schedules", "", 0},
	{"one schedule too many", func(r *rig) error {
		must(r, created("report", &ddqv1.TopicPolicy{MaxSchedules: proto.Int64(1)})(r))
		must(r, put(nil)(r))
		return put(func(s *ddqv1.Schedule) { s.Name = "another" })(r)
	}, codes.ResourceExhausted, "TOO_MANY_SCHEDULES", "topic", "", 10 * time.Second},
	{"unknown overlap", put(func(s *ddqv1.Schedule) { s.Overlap = 99 }), codes.InvalidArgument, "BAD_ENUM", "overlap", "", 0},
	{"unknown catch-up", put(func(s *ddqv1.Schedule) { s.CatchUp = &ddqv1.CatchUp{Policy: 99} }), codes.InvalidArgument, "BAD_ENUM", "catch_up.policy", "", 0},
	{"untracked without ALLOW", put(func(s *ddqv1.Schedule) { s.Track = proto.Bool(false) }), codes.InvalidArgument, "BAD_POLICY", "track", "", 0},
	{"untracked, and failures counted", put(func(s *ddqv1.Schedule) {
		s.Track, s.Overlap, s.PauseAfterFailures = proto.Bool(false), ddqv1.Overlap_OVERLAP_ALLOW, 3
	}), codes.InvalidArgument, "BAD_POLICY", "pause_after_failures", "", 0},
	{"from the end, untracked", put(func(s *ddqv1.Schedule) {
		s.Track, s.Overlap, s.Timetable.Entries = proto.Bool(false), ddqv1.Overlap_OVERLAP_ALLOW, []*ddqv1.TimetableEntry{fromEnd(time.Minute)}
	}), codes.InvalidArgument, "BAD_POLICY", "track", "", 0},
	{"from the end, beside cron", put(func(s *ddqv1.Schedule) { s.Timetable.Entries = append(s.Timetable.Entries, fromEnd(time.Minute)) }),
		codes.InvalidArgument, "BAD_POLICY", "timetable.entries[1].every.from", "", 0},

	// Templates that a topic would refuse.
	{"template with an id", template(func(t *ddqv1.EnqueueRequest) { t.Id = "a" }), codes.InvalidArgument, "BAD_SCHEDULE", "task.id", "", 0},
	{"template with a topic", template(func(t *ddqv1.EnqueueRequest) { t.Topic = "a" }), codes.InvalidArgument, "BAD_SCHEDULE", "task.topic", "", 0},
	{"template with a delay", template(func(t *ddqv1.EnqueueRequest) {
		t.When = &ddqv1.EnqueueRequest_Delay{Delay: durationpb.New(time.Second)}
	}), codes.InvalidArgument, "BAD_SCHEDULE", "task.when", "", 0},
	{"template with an expiry", template(func(t *ddqv1.EnqueueRequest) {
		t.Expiry = &ddqv1.EnqueueRequest_ExpireTime{ExpireTime: timestamppb.New(time.Now().Add(time.Hour))}
	}), codes.InvalidArgument, "BAD_SCHEDULE", "task.expire_time", "", 0},
	{"template with a latest time", template(func(t *ddqv1.EnqueueRequest) {
		t.Spread = &ddqv1.EnqueueRequest_LatestTime{LatestTime: timestamppb.New(time.Now().Add(time.Hour))}
	}), codes.InvalidArgument, "BAD_SCHEDULE", "task.latest_time", "", 0},
	{"template with a key", template(func(t *ddqv1.EnqueueRequest) { t.Idempotency = &ddqv1.Idempotency{Key: "k"} }), codes.InvalidArgument, "BAD_SCHEDULE", "task.idempotency", "", 0},
	{"template with an ordering key", template(func(t *ddqv1.EnqueueRequest) { t.OrderingKey = "k" }), codes.InvalidArgument, "BAD_SCHEDULE", "task.ordering_key", "", 0},
	{"template of bad priority", template(func(t *ddqv1.EnqueueRequest) { t.Priority = 10 }), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "task.priority", "", 0},
	{"template of bad backoff", template(func(t *ddqv1.EnqueueRequest) { t.Backoff = &ddqv1.Backoff{Kind: 99} }), codes.InvalidArgument, "BAD_ENUM", "task.backoff.kind", "", 0},
	{"template of bad attributes", template(func(t *ddqv1.EnqueueRequest) { t.Attributes = []*ddqv1.Attribute{{Key: ""}} }), codes.InvalidArgument, "BAD_ATTRIBUTES", "task.attributes", "", 0},
	{"template with slack of ages", template(func(t *ddqv1.EnqueueRequest) {
		t.Spread = &ddqv1.EnqueueRequest_Slack{Slack: durationpb.New(25 * time.Hour)}
	}),
		codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "task.slack", "", 0},
	{"template too large for the topic", func(r *rig) error {
		must(r, created("report", &ddqv1.TopicPolicy{MaxPayloadBytes: proto.Int64(1)})(r))
		return put(nil)(r)
	}, codes.InvalidArgument, "PAYLOAD_TOO_LARGE", "task.payload", "", 0},
	{"template too large for a schedule", template(func(t *ddqv1.EnqueueRequest) { t.Payload = make([]byte, 512<<10+1) }), codes.InvalidArgument, "PAYLOAD_TOO_LARGE", "task.payload", "", 0},

	// What is not there, and versions.
	{"unknown schedule", func(r *rig) error {
		_, err := r.schedules.GetSchedule(r.Context(), &ddqv1.GetScheduleRequest{Name: "nightly"})
		return err
	}, codes.NotFound, "NO_SCHEDULE", "name", "", 0},
	{"unknown topic of a schedule", func(r *rig) error {
		_, err := r.schedules.GetSchedule(r.Context(), &ddqv1.GetScheduleRequest{Topic: "report", Name: "nightly"})
		return err
	}, codes.NotFound, "NO_TOPIC", "topic", "", 0},
	{"pause of an unknown schedule", func(r *rig) error {
		_, err := r.schedules.PauseSchedule(r.Context(), &ddqv1.PauseScheduleRequest{Name: "nightly"})
		return err
	}, codes.NotFound, "NO_SCHEDULE", "name", "", 0},
	{"trigger of an unknown schedule", trigger(func(t *ddqv1.TriggerScheduleRequest) { t.Topic = "" }), codes.NotFound, "NO_SCHEDULE", "name", "", 0},
	{"preview of an unknown schedule", preview(&ddqv1.PreviewScheduleRequest{Of: existing}), codes.NotFound, "NO_SCHEDULE", "name", "", 0},
	{"preview of nothing", preview(&ddqv1.PreviewScheduleRequest{}), codes.InvalidArgument, "BAD_SCHEDULE", "of", "", 0},
	{"preview of a bad schedule", preview(&ddqv1.PreviewScheduleRequest{Of: &ddqv1.PreviewScheduleRequest_Schedule{
		Schedule: nightly(func(s *ddqv1.Schedule) { s.Timetable = cron("x") }),
	}}), codes.InvalidArgument, "BAD_CRON", "timetable.entries[0].cron", "", 0},
	{"preview of too many", after(nil, preview(&ddqv1.PreviewScheduleRequest{Of: existing, Count: 1001})), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "count", "", 0},
	{"preview backwards", after(nil, preview(&ddqv1.PreviewScheduleRequest{
		Of: existing, From: timestamppb.New(time.Unix(2e9, 0)), To: timestamppb.New(time.Unix(1e9, 0)),
	})), codes.InvalidArgument, "BAD_TIME", "to", "", 0},
	{"another version", after(nil, putIf(2)), codes.Aborted, "VERSION_MISMATCH", "if_version", "", 0},
	{"version of none", putIf(1), codes.Aborted, "VERSION_MISMATCH", "if_version", "", 0},
	{"it is there", after(nil, putIf(0)), codes.AlreadyExists, "SCHEDULE_EXISTS", "name", "", 0},
	{"negative version", putIf(-1), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "if_version", "", 0},
	{"delete of another version", after(nil, func(r *rig) error {
		_, err := r.schedules.DeleteSchedule(r.Context(), &ddqv1.DeleteScheduleRequest{Name: "nightly", IfVersion: 7})
		return err
	}), codes.Aborted, "VERSION_MISMATCH", "if_version", "", 0},
	{"unknown open runs", after(nil, func(r *rig) error {
		_, err := r.schedules.DeleteSchedule(r.Context(), &ddqv1.DeleteScheduleRequest{Name: "nightly", OpenRuns: 9})
		return err
	}), codes.InvalidArgument, "BAD_ENUM", "open_runs", "", 0},
	{"name in two topics", after(nil, func(r *rig) error {
		must(r, put(func(s *ddqv1.Schedule) { s.Topic = "mail" })(r))
		_, err := r.schedules.GetSchedule(r.Context(), &ddqv1.GetScheduleRequest{Name: "nightly"})
		return err
	}), codes.FailedPrecondition, "AMBIGUOUS_NAME", "topic", "", 0},

	// Triggers.
	{"unknown overlap of a trigger", after(nil, trigger(func(t *ddqv1.TriggerScheduleRequest) { t.Overlap = 99 })), codes.InvalidArgument, "BAD_ENUM", "overlap", "", 0},
	{"trigger while a run is open", after(nil, func(r *rig) error {
		must(r, trigger(nil)(r))
		return trigger(nil)(r)
	}), codes.FailedPrecondition, "RUN_OPEN", "overlap", "running", 0},
	{"trigger of a paused topic", after(nil, func(r *rig) error {
		_, err := r.admin.PauseTopic(r.Context(), &ddqv1.PauseTopicRequest{Name: "report", Enqueue: true})
		must(r, err)
		return trigger(nil)(r)
	}), codes.ResourceExhausted, "ENQUEUE_PAUSED", "topic", "", 5 * time.Second},

	// Backfills.
	{"backfill backwards", after(nil, backfill(-time.Hour, -2*time.Hour, nil)), codes.InvalidArgument, "BAD_TIME", "to", "", 0},
	{"backfill from nowhere", after(nil, backfill(0, 0, func(b *ddqv1.BackfillScheduleRequest) { b.From = nil })), codes.InvalidArgument, "BAD_TIME", "from", "", 0},
	{"backfill over 10,000", after(func(s *ddqv1.Schedule) { s.Timetable = cron("* * * * * *") }, backfill(-4*time.Hour, 0, nil)),
		codes.InvalidArgument, "BACKFILL_TOO_LARGE", "to", "", 0},
	{"backfill under SKIP", after(nil, backfill(-time.Hour, 0, func(b *ddqv1.BackfillScheduleRequest) { b.Overlap = ddqv1.Overlap_OVERLAP_SKIP })),
		codes.InvalidArgument, "BAD_POLICY", "overlap", "", 0},
	{"backfill from the end", after(func(s *ddqv1.Schedule) { s.Timetable.Entries = []*ddqv1.TimetableEntry{fromEnd(time.Minute)} }, backfill(-time.Hour, 0, nil)),
		codes.InvalidArgument, "BAD_POLICY", "name", "", 0},
	{"eleven backfills", after(func(s *ddqv1.Schedule) { s.Timetable = cron("* * * * * *") }, func(r *rig) error {
		for range 10 {
			must(r, backfill(-time.Minute, 0, nil)(r))
		}
		return backfill(-time.Minute, 0, nil)(r)
	}), codes.ResourceExhausted, "TOO_MANY_BACKFILLS", "name", "", time.Second},
	{"unknown backfill", after(nil, func(r *rig) error {
		_, err := r.schedules.CancelBackfill(r.Context(), &ddqv1.CancelBackfillRequest{Name: "nightly", Id: "b"})
		return err
	}), codes.NotFound, "NO_BACKFILL", "id", "", 0},

	// Calendars.
	{"no calendar", putCalendar(nil, nil), codes.InvalidArgument, "BAD_CALENDAR", "calendar", "", 0},
	{"empty calendar", putCalendar(&ddqv1.Calendar{Name: "c"}, nil), codes.InvalidArgument, "BAD_CALENDAR", "calendar", "", 0},
	{"name of a calendar", putCalendar(&ddqv1.Calendar{Name: "a b", Weekdays: []string{"SAT"}}, nil), codes.InvalidArgument, "BAD_NAME", "name", "", 0},
	{"no day", putCalendar(&ddqv1.Calendar{Name: "c", Days: []string{"2030-12-25", "2030-02-30"}}, nil), codes.InvalidArgument, "BAD_CALENDAR", "days[1]", "", 0},
	{"no day of a year", putCalendar(&ddqv1.Calendar{Name: "c", Yearly: []string{"02-30"}}, nil), codes.InvalidArgument, "BAD_CALENDAR", "yearly[0]", "", 0},
	{"no weekday", putCalendar(&ddqv1.Calendar{Name: "c", Weekdays: []string{"Caturday"}}, nil), codes.InvalidArgument, "BAD_CALENDAR", "weekdays[0]", "", 0},
	{"no local time", putCalendar(&ddqv1.Calendar{Name: "c", Spans: []*ddqv1.CalendarSpan{{From: "noon"}}}, nil), codes.InvalidArgument, "BAD_CALENDAR", "spans[0]", "", 0},
	{"backwards", putCalendar(&ddqv1.Calendar{Name: "c", Spans: []*ddqv1.CalendarSpan{{From: "2030-12-25T12:00", To: "2030-12-25T12:00"}}}, nil),
		codes.InvalidArgument, "BAD_CALENDAR", "spans[0]", "", 0},
	{"calendar of another version", putCalendar(weekend, proto.Int64(3)), codes.Aborted, "VERSION_MISMATCH", "if_version", "", 0},
	{"calendar that is there", func(r *rig) error {
		must(r, putCalendar(weekend, nil)(r))
		return putCalendar(weekend, proto.Int64(0))(r)
	}, codes.AlreadyExists, "CALENDAR_EXISTS", "name", "", 0},
	{"unknown calendar", func(r *rig) error {
		_, err := r.schedules.GetCalendar(r.Context(), &ddqv1.GetCalendarRequest{Name: "weekend"})
		return err
	}, codes.NotFound, "NO_CALENDAR", "name", "", 0},
	{"unknown calendar of a schedule", put(func(s *ddqv1.Schedule) { s.Timetable.Calendars = []string{"weekend"} }), codes.NotFound, "NO_CALENDAR", "timetable.calendars", "", 0},
	{"21 calendars", put(func(s *ddqv1.Schedule) { s.Timetable.Calendars = make([]string, 21) }), codes.InvalidArgument, "BAD_SCHEDULE", "timetable.calendars", "", 0},
	{"delete of a calendar in use", func(r *rig) error {
		must(r, putCalendar(weekend, nil)(r))
		must(r, put(func(s *ddqv1.Schedule) { s.Timetable.Calendars = []string{"weekend"} })(r))
		_, err := r.schedules.DeleteCalendar(r.Context(), &ddqv1.DeleteCalendarRequest{Name: "weekend"})
		return err
	}, codes.FailedPrecondition, "CALENDAR_IN_USE", "name", "", 0},

	// Forecasts and dry runs.
	{"forecast of no topic's name", forecastOf(&ddqv1.ForecastRequest{Topic: "a b"}), codes.InvalidArgument, "BAD_NAME", "topic", "", 0},
	{"forecast of an unknown topic", forecastOf(&ddqv1.ForecastRequest{Topic: "nobody"}), codes.NotFound, "NO_TOPIC", "topic", "", 0},
	{"forecast backwards", forecastOf(&ddqv1.ForecastRequest{From: inAn(2 * time.Hour), To: inAn(time.Hour)}), codes.InvalidArgument, "BAD_TIME", "to", "", 0},
	{"forecast by milliseconds", forecastOf(&ddqv1.ForecastRequest{BucketMs: 999}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "bucket_ms", "", 0},
	{"negative bucket", forecastOf(&ddqv1.ForecastRequest{BucketMs: -1}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "bucket_ms", "", 0},
	{"bucket beyond all time", forecastOf(&ddqv1.ForecastRequest{BucketMs: 1 << 60}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "bucket_ms", "", 0},
	{"2,001 buckets", forecastOf(&ddqv1.ForecastRequest{From: inAn(time.Hour), To: inAn(time.Hour + 2001*time.Second), BucketMs: 1000}),
		codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "bucket_ms", "", 0},
	{"dry run of no topic", dryRunOf(&ddqv1.DryRunRequest{To: inAn(time.Hour)}), codes.InvalidArgument, "BAD_NAME", "topic", "", 0},
	{"dry run without end", after(nil, dryRunOf(&ddqv1.DryRunRequest{Topic: "report"})), codes.InvalidArgument, "BAD_TIME", "to", "", 0},
	{"dry run of what has been", after(nil, dryRunOf(&ddqv1.DryRunRequest{Topic: "report", To: inAn(-time.Hour)})), codes.InvalidArgument, "BAD_TIME", "to", "", 0},
	{"dry run of no schedule's name", after(nil, dryRunOf(&ddqv1.DryRunRequest{Topic: "report", Name: "a b", To: inAn(time.Hour)})), codes.InvalidArgument, "BAD_NAME", "name", "", 0},
	{"dry run of an unknown schedule", after(nil, dryRunOf(&ddqv1.DryRunRequest{Topic: "report", Name: "nobody", To: inAn(time.Hour)})), codes.NotFound, "NO_SCHEDULE", "name", "", 0},
	{"page of a dry run", after(nil, dryRunOf(&ddqv1.DryRunRequest{Topic: "report", To: inAn(time.Hour), PageSize: -1})), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "page_size", "", 0},
	{"token of another listing for a dry run", after(nil, dryRunOf(&ddqv1.DryRunRequest{Topic: "report", To: inAn(time.Hour), PageToken: "dG9waWNzOmE"})),
		codes.InvalidArgument, "BAD_CURSOR", "page_token", "", 0},

	// Pages and batches.
	{"negative page of schedules", func(r *rig) error {
		_, err := r.schedules.ListSchedules(r.Context(), &ddqv1.ListSchedulesRequest{PageSize: -1})
		return err
	}, codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "page_size", "", 0},
	{"token of another listing", func(r *rig) error {
		_, err := r.schedules.ListSchedules(r.Context(), &ddqv1.ListSchedulesRequest{PageToken: "dG9waWNzOmE"})
		return err
	}, codes.InvalidArgument, "BAD_CURSOR", "page_token", "", 0},
	{"unknown state of schedules", func(r *rig) error {
		_, err := r.schedules.ListSchedules(r.Context(), &ddqv1.ListSchedulesRequest{State: 9})
		return err
	}, codes.InvalidArgument, "BAD_ENUM", "state", "", 0},
	{"skipped since no time", skippedSince(&timestamppb.Timestamp{}), codes.InvalidArgument, "BAD_TIME", "skipped_since", "", 0},
	{"skipped since before 1970", skippedSince(&timestamppb.Timestamp{Seconds: -1}), codes.InvalidArgument, "BAD_TIME", "skipped_since", "", 0},
	{"skipped since odd nanos", skippedSince(&timestamppb.Timestamp{Seconds: 1, Nanos: -1}), codes.InvalidArgument, "BAD_TIME", "skipped_since", "", 0},
	{"skipped since beyond all time", skippedSince(&timestamppb.Timestamp{Seconds: 1 << 60}), codes.InvalidArgument, "BAD_TIME", "skipped_since", "", 0},
	{"no schedules", func(r *rig) error {
		_, err := r.schedules.PutSchedules(r.Context(), &ddqv1.PutSchedulesRequest{})
		return err
	}, codes.InvalidArgument, "BATCH_SIZE", "schedules", "", 0},
}

func skippedSince(at *timestamppb.Timestamp) func(r *rig) error {
	return func(r *rig) error {
		_, err := r.schedules.ListSchedules(r.Context(), &ddqv1.ListSchedulesRequest{SkippedSince: at})
		return err
	}
}

func TestEveryRefusalOfSchedulesHasItsCodeAndDetails(t *testing.T) { testRefusals(t, scheduleRefusals) }

// TestRefusalsNameWhatIsMeant looks at what people read.
func TestRefusalsNameWhatIsMeant(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		for want, edit := range map[string]func(*ddqv1.Schedule){
			"did you mean Europe/Berlin?": func(s *ddqv1.Schedule) { s.Timetable.Zone = "Berlin" },
			"hour (column 4)":             func(s *ddqv1.Schedule) { s.Timetable = cron("30 25 * * *") },
		} {
			if err := put(edit)(r); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v does not say %q", err, want)
			}
		}
	})
}

// TestPutsFailAlone puts schedules of which one is bad.
func TestPutsFailAlone(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		requests := &ddqv1.PutSchedulesRequest{}
		for _, name := range []string{"a", "b c", "d"} {
			requests.Schedules = append(requests.Schedules, &ddqv1.PutScheduleRequest{Schedule: nightly(func(s *ddqv1.Schedule) { s.Name = name })})
		}
		reply, err := r.schedules.PutSchedules(context.Background(), requests)
		must(r, err)
		for i, want := range []string{"", "BAD_NAME", ""} {
			if got := reply.Results[i].GetError().GetReason(); got != want || (want == "") != (reply.Results[i].GetPut().GetVersion() == 1) {
				t.Errorf("%d: %v", i, reply.Results[i])
			}
		}
	})
}
