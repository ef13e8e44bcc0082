package server

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// references are the requests in which something names another thing than the topic that the request is about, with
// the grants on that thing that the caller needs beside those on its own topic, mail. Calendars are left out: everybody
// may read them. A request that is new here has a field that names a topic, an audience or what else there is.
var references = []struct {
	name  string
	needs []string
	call  func(ctx context.Context, r *guardedRig) error
}{
	{"topic of a step of a workflow", []string{"producer:orders"}, func(ctx context.Context, r *guardedRig) error {
		_, err := r.workflows.SubmitWorkflow(ctx, &ddqv1.SubmitWorkflowRequest{Workflow: &ddqv1.Workflow{Topic: "mail", Steps: elsewhere()}})
		return err
	}},
	{"topic of a step of a child", []string{"producer:orders"}, func(ctx context.Context, r *guardedRig) error {
		child := &ddqv1.Step{Name: "a", Does: &ddqv1.Step_Child{Child: &ddqv1.Workflow{Steps: elsewhere()}}}
		_, err := r.workflows.SubmitWorkflow(ctx, &ddqv1.SubmitWorkflowRequest{Workflow: &ddqv1.Workflow{Topic: "mail", Steps: []*ddqv1.Step{child}}})
		return err
	}},
	{"topic of what undoes a step", []string{"producer:orders"}, func(ctx context.Context, r *guardedRig) error {
		undone := &ddqv1.Step{Name: "a", Does: &ddqv1.Step_Task{Task: &ddqv1.TaskTemplate{}}, Undo: &ddqv1.TaskTemplate{Topic: "orders"}}
		_, err := r.workflows.SubmitWorkflow(ctx, &ddqv1.SubmitWorkflowRequest{Workflow: &ddqv1.Workflow{Topic: "mail", Steps: []*ddqv1.Step{undone}}})
		return err
	}},
	{"topic of a child", []string{"producer:orders"}, func(ctx context.Context, r *guardedRig) error {
		child := &ddqv1.Step{Name: "a", Does: &ddqv1.Step_Child{Child: &ddqv1.Workflow{Topic: "orders", Steps: []*ddqv1.Step{{Name: "b", Does: &ddqv1.Step_Task{Task: &ddqv1.TaskTemplate{}}}}}}}
		_, err := r.workflows.SubmitWorkflow(ctx, &ddqv1.SubmitWorkflowRequest{Workflow: &ddqv1.Workflow{Topic: "mail", Steps: []*ddqv1.Step{child}}})
		return err
	}},
	{"topic of a step of a schedule's workflow", []string{"operator,producer:orders"}, func(ctx context.Context, r *guardedRig) error {
		s := &ddqv1.Schedule{Name: "s", Topic: "mail", Timetable: daily(), Run: &ddqv1.Schedule_Workflow{Workflow: &ddqv1.Workflow{Steps: elsewhere()}}}
		_, err := r.schedules.PutSchedule(ctx, &ddqv1.PutScheduleRequest{Schedule: s})
		return err
	}},
	{"audience of a schedule", []string{"operator:*"}, func(ctx context.Context, r *guardedRig) error {
		_, err := r.schedules.PutSchedule(ctx, &ddqv1.PutScheduleRequest{Schedule: toAudience()})
		return err
	}},
	{"audience of one of several schedules", []string{"operator:*"}, func(ctx context.Context, r *guardedRig) error {
		got, err := r.schedules.PutSchedules(ctx, &ddqv1.PutSchedulesRequest{Schedules: []*ddqv1.PutScheduleRequest{{Schedule: toAudience()}}})
		if err != nil {
			return err
		}
		return itemError(got.Results[0].GetError())
	}},
	{"audience of a preview", []string{"viewer:*"}, func(ctx context.Context, r *guardedRig) error {
		_, err := r.schedules.PreviewSchedule(ctx, &ddqv1.PreviewScheduleRequest{Of: &ddqv1.PreviewScheduleRequest_Schedule{Schedule: toAudience()}})
		return err
	}},
	{"audience that is not there", []string{"operator:*"}, func(ctx context.Context, r *guardedRig) error {
		s := toAudience()
		s.Audience.Name = "nobody"
		_, err := r.schedules.PutSchedule(ctx, &ddqv1.PutScheduleRequest{Schedule: s})
		if status.Code(err) == codes.NotFound {
			return nil
		}
		return err
	}},
	{"topic of what an ack enqueues", []string{"producer:orders"}, func(ctx context.Context, r *guardedRig) error {
		_, err := r.queue.Enqueue(r.as(r.root), &ddqv1.EnqueueRequest{Topic: "mail"})
		must(r.rig, err)
		d, err := r.queue.Retrieve(r.as(r.root), &ddqv1.RetrieveRequest{Topic: "mail", WaitMs: 1000})
		if must(r.rig, err); len(d.Deliveries) != 1 {
			r.Fatal("the task was not delivered")
		}
		ack := &ddqv1.Ack{TaskId: d.Deliveries[0].Task.Id, HoldToken: d.Deliveries[0].HoldToken, Enqueue: []*ddqv1.EnqueueRequest{{Topic: "orders"}}}
		_, err = r.queue.Ack(ctx, &ddqv1.AckRequest{Topic: "mail", Ack: ack})
		if err != nil { // so that the next one takes another task
			ack.Enqueue = nil
			_, again := r.queue.Ack(r.as(r.root), &ddqv1.AckRequest{Topic: "mail", Ack: ack})
			must(r.rig, again)
		}
		return err
	}},
	{"topic of one task of a batch", []string{"producer:orders"}, func(ctx context.Context, r *guardedRig) error {
		got, err := r.queue.EnqueueBatch(ctx, &ddqv1.EnqueueBatchRequest{Tasks: []*ddqv1.EnqueueRequest{{Topic: "mail"}, {Topic: "orders"}}})
		if err != nil {
			return err
		}
		must(r.rig, itemError(got.Results[0].GetError()))
		return itemError(got.Results[1].GetError())
	}},
}

func elsewhere() []*ddqv1.Step {
	return []*ddqv1.Step{{Name: "a", Does: &ddqv1.Step_Task{Task: &ddqv1.TaskTemplate{Topic: "orders"}}}}
}

func daily() *ddqv1.Timetable {
	return &ddqv1.Timetable{Entries: []*ddqv1.TimetableEntry{{When: &ddqv1.TimetableEntry_Cron{Cron: "@daily"}}}}
}

func toAudience() *ddqv1.Schedule {
	return &ddqv1.Schedule{Name: "news", Topic: "mail", Timetable: daily(), Run: &ddqv1.Schedule_Task{Task: &ddqv1.EnqueueRequest{}}, Audience: &ddqv1.AudienceTarget{Name: "vips"}}
}

func itemError(e *ddqv1.Error) error {
	switch {
	case e == nil:
		return nil
	case e.GetReason() == "NOT_ALLOWED":
		return status.Error(codes.PermissionDenied, e.GetMessage())
	}
	return status.Error(codes.Unknown, e.GetReason()+": "+e.GetMessage())
}

// TestWhatIsNamedIsAllowedByItself: the grants on the topic of a request are not enough, and those that the table names are.
func TestWhatIsNamedIsAllowedByItself(t *testing.T) {
	guardedBubble(t, func(r *guardedRig) {
		for _, topic := range []string{"mail", "orders"} {
			_, err := r.admin.CreateTopic(r.as(r.root), &ddqv1.CreateTopicRequest{Name: topic})
			must(r.rig, err)
		}
		_, err := ddqv1.NewAudienceServiceClient(r.conn).CreateAudience(r.as(r.root), &ddqv1.CreateAudienceRequest{Audience: &ddqv1.Audience{Name: "vips"}})
		must(r.rig, err)
		narrow, _ := r.token(0, "operator,producer,worker,payload:mail*")
		for _, c := range references {
			if err := c.call(r.as(narrow), r); status.Code(err) != codes.PermissionDenied {
				r.Errorf("%s: with grants on the request's topic alone: %v, want PermissionDenied", c.name, err)
			}
			wide, _ := r.token(0, append([]string{"operator,producer,worker,payload:mail*"}, c.needs...)...)
			if err := c.call(r.as(wide), r); err != nil {
				r.Errorf("%s: with %v: %v", c.name, c.needs, err)
			}
		}
	})
}
