package server

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/server/status/statustest"
)

// TestRunOfAnAudience has recipients get what a schedule makes for them, over the wire.
func TestRunOfAnAudience(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		users, schedules := ddqv1.NewAudienceServiceClient(r.conn), ddqv1.NewScheduleServiceClient(r.conn)
		target := &ddqv1.AudienceTarget{Name: "users", Kind: "digest", WindowMs: 60_000, GrainMs: 1000, SpreadFrom: proto.Int64(0)}
		put := &ddqv1.PutScheduleRequest{Schedule: &ddqv1.Schedule{
			Topic: "mail", Name: "hourly", Timetable: &ddqv1.Timetable{Entries: []*ddqv1.TimetableEntry{every(time.Hour)}},
			Run: &ddqv1.Schedule_Task{Task: &ddqv1.EnqueueRequest{Payload: []byte("go")}}, Audience: target,
		}}
		if _, err := schedules.PutSchedule(r.Context(), put); status.Code(err) != codes.NotFound {
			r.Errorf("without an audience: %v", err)
		}
		_, err := users.CreateAudience(r.Context(), &ddqv1.CreateAudienceRequest{Audience: &ddqv1.Audience{Name: "users", Shards: 4}})
		must(r, err)
		if _, err := schedules.PutSchedule(r.Context(), put); status.Code(err) != codes.NotFound {
			r.Errorf("without the kind: %v", err)
		}
		target.Kind = ""
		_, err = users.PutRecipients(r.Context(), &ddqv1.PutRecipientsRequest{Audience: "users", Recipients: []*ddqv1.Recipient{
			{Id: "ada", Data: []byte("x")}, {Id: "bob"}, {Id: "eve", Disabled: true},
		}})
		must(r, err)
		_, err = schedules.PutSchedule(r.Context(), put)
		must(r, err)
		got, err := schedules.GetSchedule(r.Context(), &ddqv1.GetScheduleRequest{Topic: "mail", Name: "hourly"})
		must(r, err)
		target.Quiet, target.Track = ddqv1.QuietPolicy_QUIET_POLICY_DEFER, proto.Bool(true)
		if !proto.Equal(got.GetSchedule().GetAudience(), target) {
			r.Errorf("the audience is %v, want %v", got.GetSchedule().GetAudience(), target)
		}

		if _, err := users.DeleteAudience(r.Context(), &ddqv1.DeleteAudienceRequest{Name: "users"}); status.Code(err) != codes.FailedPrecondition {
			r.Errorf("deletion of one that a schedule has: %v", err)
		}

		preview, err := schedules.PreviewSchedule(r.Context(), &ddqv1.PreviewScheduleRequest{
			Of: &ddqv1.PreviewScheduleRequest_Existing{Existing: &ddqv1.ScheduleName{Topic: "mail", Name: "hourly"}},
		})
		must(r, err)
		if p := preview.GetAudience(); !p.GetExact() || p.GetTasks() != 2 || p.GetSkipped().GetDisabled() != 1 || len(p.GetExamples()) != 0 {
			r.Errorf("the preview of a run is %v", p)
		}
		if next := preview.Occurrences[0].OccurrenceTime; !proto.Equal(preview.GetAudience().GetBeginTime(), next) {
			r.Errorf("it is at %v, want %v", preview.GetAudience().GetBeginTime(), next)
		}

		time.Sleep(time.Hour + 2*time.Minute)
		tasks, err := r.queue.Retrieve(r.Context(), &ddqv1.RetrieveRequest{Topic: "mail", MaxTasks: 10, WaitMs: 1000})
		must(r, err)
		data := make(map[string]string)
		for _, d := range tasks.Deliveries {
			data[d.Task.Recipient] = string(d.Task.RecipientData)
			r.mustAck("mail", d)
		}
		if len(data) != 2 || data["ada"] != "x" || data["bob"] != "" {
			r.Errorf("tasks are for %v", data)
		}
		time.Sleep(time.Second)
		got, err = schedules.GetSchedule(r.Context(), &ddqv1.GetScheduleRequest{Topic: "mail", Name: "hourly"})
		must(r, err)
		if got.GetStatus().GetTotals().GetDone() != 1 {
			r.Errorf("after the run: %v", got.GetStatus())
		}
	})
}

func TestAudiencesOfSchedulesAreChecked(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		schedules := ddqv1.NewScheduleServiceClient(r.conn)
		for name, edit := range map[string]func(*ddqv1.AudienceTarget){
			"a window of more than a day":  func(a *ddqv1.AudienceTarget) { a.WindowMs = 86_400_001 },
			"a negative window":            func(a *ddqv1.AudienceTarget) { a.WindowMs = -1 },
			"a grain that is the larger":   func(a *ddqv1.AudienceTarget) { a.WindowMs, a.GrainMs = 10, 11 },
			"a negative number":            func(a *ddqv1.AudienceTarget) { a.SpreadFrom = proto.Int64(-1) },
			"a policy that there is not":   func(a *ddqv1.AudienceTarget) { a.Quiet = 9 },
			"a name that no audience has":  func(a *ddqv1.AudienceTarget) { a.Name = "~" },
			"an audience that has no name": func(a *ddqv1.AudienceTarget) { a.Name = "" },
		} {
			s := nightly(func(s *ddqv1.Schedule) { s.Audience = &ddqv1.AudienceTarget{Name: "users"} })
			edit(s.Audience)
			if _, err := schedules.PutSchedule(r.Context(), &ddqv1.PutScheduleRequest{Schedule: s}); status.Code(err) != codes.InvalidArgument {
				r.Errorf("%s: %v", name, err)
			}
		}
	})
}

// TestTimesOfRecipientsAreChecked refuses what has no meaning at the time of each recipient.
func TestTimesOfRecipientsAreChecked(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		schedules := ddqv1.NewScheduleServiceClient(r.conn)
		_, err := ddqv1.NewAudienceServiceClient(r.conn).CreateAudience(r.Context(), &ddqv1.CreateAudienceRequest{Audience: &ddqv1.Audience{Name: "users", Shards: 1}})
		must(r, err)
		for field, edit := range map[string]func(*ddqv1.Schedule){
			"timetable.zone":             func(s *ddqv1.Schedule) { s.Audience = nil },
			"timetable.jitter_ms":        func(s *ddqv1.Schedule) { s.Timetable.JitterMs = 1000 },
			"timetable.entries[0].every": func(s *ddqv1.Schedule) { s.Timetable.Entries = []*ddqv1.TimetableEntry{every(24 * time.Hour)} },
			"timetable.entries":          func(s *ddqv1.Schedule) { s.Timetable.Entries = cron("0 * * * *").Entries },
		} {
			s := nightly(func(s *ddqv1.Schedule) {
				s.Timetable = cron("0 9 * * *")
				s.Timetable.Zone, s.Audience = "recipient", &ddqv1.AudienceTarget{Name: "users"}
			})
			edit(s)
			_, err := schedules.PutSchedule(r.Context(), &ddqv1.PutScheduleRequest{Schedule: s})
			if got := statustest.Look(r.T, err); got.Reason != "BAD_POLICY" || got.Field != field {
				r.Errorf("%s: %+v", field, got)
			}
		}
		s := nightly(func(s *ddqv1.Schedule) {
			s.Timetable = cron("0 9,17 * * *")
			s.Timetable.Zone, s.Audience = "recipient", &ddqv1.AudienceTarget{Name: "users", WindowMs: 3600_000}
		})
		_, err = schedules.PutSchedule(r.Context(), &ddqv1.PutScheduleRequest{Schedule: s})
		must(r, err)
		put, err := schedules.GetSchedule(r.Context(), &ddqv1.GetScheduleRequest{Topic: s.Topic, Name: s.Name})
		must(r, err)
		if put.GetSchedule().GetOverlap() != ddqv1.Overlap_OVERLAP_ALLOW {
			r.Errorf("its overlap is %v", put.GetSchedule().GetOverlap())
		}
	})
}
