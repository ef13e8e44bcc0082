package server

import (
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/server/status/statustest"
	"github.com/ddq-io/ddq/store"
)

// Rows of the table of bad input of schedules and audiences that need another server than the
// others.

// refused checks the answer of a call.
func (r *rig) refused(what string, err error, code codes.Code, reason, field string) {
	r.Helper()
	if err == nil {
		r.Errorf("%s is accepted", what)
		return
	}
	if got := statustest.Look(r.T, err); got.Code != code || got.Reason != reason || got.Field != field {
		r.Errorf("%s: %+v, want %v %s of field %q", what, got, code, reason, field)
	}
}

func TestSchedulesAreRefusedBesideAnOldNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		self := fleet.Member{Name: "a", Addr: "10.0.0.1:9090", State: fleet.MemberActive}
		old := fleet.Member{Name: "b", Addr: "b:9090", State: fleet.MemberActive, Old: true}
		r := newRig(t, Config{}, actors.Config{Node: "a"}, self, old)
		defer r.close()
		r.refused("a schedule", put(nil)(r), codes.FailedPrecondition, "OLD_NODES", "")
		r.refused("a workflow", closed(nil)(r), codes.FailedPrecondition, "OLD_NODES", "")
	})
}

func TestSchedulesAreRefusedWhileTheOutboxIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, actors.Config{Topic: store.Topic{Shards: 1}, Limits: actors.Limits{Parcels: 1}})
		defer r.close()
		must(r, created("audit", nil)(r))
		_, err := r.admin.PauseTopic(r.Context(), &ddqv1.PauseTopicRequest{Name: "audit", Enqueue: true})
		must(r, err)
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "orders"})
		must(r, r.finish(r.take("orders"), func(a *ddqv1.Ack) { a.Enqueue = []*ddqv1.EnqueueRequest{{Topic: "audit"}} }))
		ofOrders := put(func(s *ddqv1.Schedule) { s.Topic = "orders" })
		r.refused("a schedule", ofOrders(r), codes.ResourceExhausted, "OUTBOX_FULL", "topic")

		_, err = r.admin.ResumeTopic(r.Context(), &ddqv1.ResumeTopicRequest{Name: "audit"})
		must(r, err)
		time.Sleep(20 * time.Second) // the count is gone by for a while
		must(r, ofOrders(r))
	})
}

func TestRecipientsAreRefusedWhenTheAudienceIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, actors.Config{Limits: actors.Limits{Recipients: 2}})
		defer r.close()
		users := ddqv1.NewAudienceServiceClient(r.conn)
		_, err := users.CreateAudience(r.Context(), &ddqv1.CreateAudienceRequest{Audience: &ddqv1.Audience{Name: "users", Shards: 1}})
		must(r, err)
		many := make([]*ddqv1.Recipient, 2)
		for i := range many {
			many[i] = &ddqv1.Recipient{Id: string(rune('a' + i))}
		}
		_, err = users.PutRecipients(r.Context(), &ddqv1.PutRecipientsRequest{Audience: "users", Recipients: many})
		must(r, err)
		reply, err := users.PutRecipients(r.Context(), &ddqv1.PutRecipientsRequest{Audience: "users", Recipients: []*ddqv1.Recipient{{Id: "c"}, {Id: "a", Disabled: true}}})
		must(r, err)
		e := reply.Results[0].GetError()
		if codes.Code(e.GetCode()) != codes.ResourceExhausted || e.GetReason() != "AUDIENCE_FULL" || e.GetField() != "recipients" {
			r.Errorf("one too many: %v", reply.Results[0])
		}
		if got := reply.Results[1].GetOutcome(); got != ddqv1.RecipientOutcome_RECIPIENT_OUTCOME_CHANGED {
			r.Errorf("one that is there: %v", reply.Results[1])
		}
	})
}

// audienceRefusals are the rows about audiences.
var audienceRefusals = []refusal{
	{"schedule of an unknown audience", put(func(s *ddqv1.Schedule) { s.Audience = &ddqv1.AudienceTarget{Name: "users"} }), codes.NotFound, "NO_AUDIENCE", "audience.name", "", 0},
	{"unknown audience", ofUsers(func(r *rig, users ddqv1.AudienceServiceClient) error {
		_, err := users.DescribeAudience(r.Context(), &ddqv1.DescribeAudienceRequest{Name: "nobody"})
		return err
	}), codes.NotFound, "NO_AUDIENCE", "name", "", 0},
	{"schedule of an unknown kind", ofUsers(func(r *rig, _ ddqv1.AudienceServiceClient) error {
		return put(func(s *ddqv1.Schedule) { s.Audience = &ddqv1.AudienceTarget{Name: "users", Kind: "news"} })(r)
	}), codes.NotFound, "NO_KIND", "audience.kind", "", 0},
	{"window of more than a day", ofUsers(func(r *rig, _ ddqv1.AudienceServiceClient) error {
		return put(func(s *ddqv1.Schedule) { s.Audience = &ddqv1.AudienceTarget{Name: "users", WindowMs: 86_400_001} })(r)
	}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "audience.window_ms", "", 0},
	{"grain over the window", ofUsers(func(r *rig, _ ddqv1.AudienceServiceClient) error {
		return put(func(s *ddqv1.Schedule) { s.Audience = &ddqv1.AudienceTarget{Name: "users", WindowMs: 10, GrainMs: 11} })(r)
	}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "audience.grain_ms", "", 0},
	{"delete of an audience that a schedule has", ofUsers(func(r *rig, users ddqv1.AudienceServiceClient) error {
		must(r, put(func(s *ddqv1.Schedule) { s.Audience = &ddqv1.AudienceTarget{Name: "users"} })(r))
		_, err := users.DeleteAudience(r.Context(), &ddqv1.DeleteAudienceRequest{Name: "users"})
		return err
	}), codes.FailedPrecondition, "AUDIENCE_IN_USE", "name", "", 0},
	{"unknown run", ofUsers(func(r *rig, users ddqv1.AudienceServiceClient) error {
		_, err := users.CancelRun(r.Context(), &ddqv1.CancelRunRequest{Audience: "users", Id: "r"})
		return err
	}), codes.NotFound, "NO_RUN", "id", "", 0},
}

// ofUsers makes a call once there is an audience.
func ofUsers(call func(r *rig, users ddqv1.AudienceServiceClient) error) func(r *rig) error {
	return func(r *rig) error {
		users := ddqv1.NewAudienceServiceClient(r.conn)
		_, err := users.CreateAudience(r.Context(), &ddqv1.CreateAudienceRequest{Audience: &ddqv1.Audience{
			Name: "users", Shards: 1, Kinds: []*ddqv1.AudienceKind{{Name: "digest"}},
		}})
		must(r, err)
		return call(r, users)
	}
}

func TestEveryRefusalOfAudiencesHasItsCodeAndDetails(t *testing.T) {
	testRefusals(t, audienceRefusals)
}

// Bad recipients fail alone, each with the field that is bad.
func TestBadRecipientsHaveTheirReasons(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		must(r, ofUsers(func(r *rig, users ddqv1.AudienceServiceClient) error {
			bad := map[string]*ddqv1.Recipient{
				"id":    {},
				"zone":  {Id: "a", Zone: "Nowhere"},
				"quiet": {Id: "b", Quiet: &ddqv1.QuietHours{From: "24:00", To: "07:00"}},
				"off":   {Id: "c", Off: []string{"digest"}, On: []string{"digest"}},
				"data":  {Id: "d", Data: make([]byte, 257)},
			}
			for field, recipient := range bad {
				reply, err := users.PutRecipients(r.Context(), &ddqv1.PutRecipientsRequest{Audience: "users", Recipients: []*ddqv1.Recipient{recipient}})
				must(r, err)
				if e := reply.Results[0].GetError(); codes.Code(e.GetCode()) != codes.InvalidArgument || e.GetReason() != "BAD_RECIPIENT" {
					r.Errorf("%s: %v", field, reply.Results[0])
				}
			}
			return nil
		})(r))
	})
}

// finishedSchedule has one run, which nobody follows.
func finishedSchedule(s *ddqv1.Schedule) {
	s.Timetable.Entries, s.MaxRuns = []*ddqv1.TimetableEntry{every(time.Second)}, 1
	s.Overlap, s.Track = ddqv1.Overlap_OVERLAP_ALLOW, proto.Bool(false)
}

func TestFinishedSchedulesAreNotTriggered(t *testing.T) {
	testRefusals(t, []refusal{
		{"trigger", after(finishedSchedule, func(r *rig) error { time.Sleep(10 * time.Second); return trigger(nil)(r) }),
			codes.FailedPrecondition, "SCHEDULE_FINISHED", "name", "", 0},
		{"backfill", after(finishedSchedule, func(r *rig) error { time.Sleep(10 * time.Second); return backfill(-time.Minute, 0, nil)(r) }),
			codes.FailedPrecondition, "SCHEDULE_FINISHED", "name", "", 0},
	})
}
