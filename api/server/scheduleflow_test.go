package server

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// closing is a schedule of a workflow: what a shop does at the end of a day.
func closing(edit func(*ddqv1.Schedule)) *ddqv1.Schedule {
	s := &ddqv1.Schedule{
		Topic: "shop", Name: "closing", Timetable: cron("0 2,5 * * *"), Run: &ddqv1.Schedule_Workflow{Workflow: &ddqv1.Workflow{
			Name: "closing", Input: []byte("all"), Undo: true, Steps: []*ddqv1.Step{
				{Name: "count", Input: true}, {Name: "report", After: []*ddqv1.After{{Step: "count"}}},
			},
		}},
	}
	if edit != nil {
		edit(s)
	}
	return s
}

// closed puts closing with a change.
func closed(edit func(*ddqv1.Schedule)) func(r *rig) error {
	return func(r *rig) error {
		_, err := r.schedules.PutSchedule(r.Context(), &ddqv1.PutScheduleRequest{Schedule: closing(edit)})
		return err
	}
}

// flowed puts closing with a change of its workflow.
func flowed(edit func(*ddqv1.Workflow)) func(r *rig) error {
	return closed(func(s *ddqv1.Schedule) { edit(s.GetWorkflow()) })
}

var flowRefusals = []refusal{
	{"a workflow with an id", flowed(func(w *ddqv1.Workflow) { w.Id = "a" }), codes.InvalidArgument, "BAD_WORKFLOW", "workflow.id", "", 0},
	{"a workflow with a topic", flowed(func(w *ddqv1.Workflow) { w.Topic = "shop" }), codes.InvalidArgument, "BAD_WORKFLOW", "workflow.topic", "", 0},
	{"a workflow without steps", flowed(func(w *ddqv1.Workflow) { w.Steps = nil }), codes.InvalidArgument, "BAD_GRAPH", "workflow.steps", "", 0},
	{"a workflow that waits for nothing", flowed(func(w *ddqv1.Workflow) { w.Steps[1].After[0].Step = "x" }), codes.InvalidArgument, "BAD_GRAPH", "workflow.steps[1].after[0]", "", 0},
	{"a step too large for another topic", func(r *rig) error {
		most := int64(3)
		must(r, created("mail", &ddqv1.TopicPolicy{MaxPayloadBytes: &most})(r))
		return flowed(func(w *ddqv1.Workflow) {
			w.Steps[0].Does = &ddqv1.Step_Task{Task: &ddqv1.TaskTemplate{Topic: "mail", Payload: []byte("four")}}
		})(r)
	}, codes.InvalidArgument, "PAYLOAD_TOO_LARGE", "workflow.steps[0].task.payload", "", 0},
	{"a step of a bad priority", flowed(func(w *ddqv1.Workflow) {
		w.Steps[0].Does = &ddqv1.Step_Task{Task: &ddqv1.TaskTemplate{Priority: 10}}
	}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "workflow.steps[0].task.priority", "", 0},
	{"a step too large for the topic", func(r *rig) error {
		most := int64(3)
		must(r, created("shop", &ddqv1.TopicPolicy{MaxPayloadBytes: &most})(r))
		return flowed(func(w *ddqv1.Workflow) {
			w.Steps[0].Does = &ddqv1.Step_Task{Task: &ddqv1.TaskTemplate{Payload: []byte("four")}}
		})(r)
	}, codes.InvalidArgument, "PAYLOAD_TOO_LARGE", "workflow.steps[0].task.payload", "", 0},
	{"a workflow over 768 KiB", flowed(func(w *ddqv1.Workflow) {
		w.Steps = []*ddqv1.Step{large("a"), {Name: "b", Does: &ddqv1.Step_Task{Task: &ddqv1.TaskTemplate{Payload: make([]byte, 200<<10)}}}}
	}), codes.InvalidArgument, "BAD_SCHEDULE", "workflow", "", 0},
	{"a workflow for an audience", closed(func(s *ddqv1.Schedule) { s.Audience = &ddqv1.AudienceTarget{Name: "users"} }),
		codes.InvalidArgument, "BAD_POLICY", "audience", "", 0},
	{"a name with a slash", closed(func(s *ddqv1.Schedule) { s.Name = "a/b" }), codes.InvalidArgument, "BAD_NAME", "name", "", 0},
	{"neither task nor workflow", closed(func(s *ddqv1.Schedule) { s.Run = nil }), codes.InvalidArgument, "BAD_SCHEDULE", "task", "", 0},
}

func TestEveryRefusalOfAScheduledWorkflowHasItsCodeAndDetails(t *testing.T) {
	testRefusals(t, flowRefusals)
}

func (r *rig) closing() *ddqv1.GetScheduleResponse {
	r.Helper()
	got, err := r.schedules.GetSchedule(r.Context(), &ddqv1.GetScheduleRequest{Topic: "shop", Name: "closing"})
	must(r, err)
	return got
}

func (r *rig) flow(id string) *ddqv1.GetWorkflowResponse {
	r.Helper()
	got, err := r.workflows.GetWorkflow(r.Context(), &ddqv1.GetWorkflowRequest{Topic: "shop", Id: id, View: ddqv1.WorkflowView_WORKFLOW_VIEW_STEPS})
	must(r, err)
	return got
}

// until lets time pass until a moment of the bubble's first days.
func until(d time.Duration) { time.Sleep(time.Until(inAn(d).AsTime())) }

const second = 5 * time.Hour // of the first day; the first is at 2 o'clock

// TestNightlyWorkflow starts a workflow at its time, and takes it for one run until it has ended.
func TestNightlyWorkflow(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		must(r, closed(nil)(r))
		if got := r.closing(); !strings.Contains(got.GetSchedule().GetWorkflow().String(), "report") || got.GetSchedule().GetTask() != nil {
			r.Errorf("it is %v", got.GetSchedule())
		}
		plan, err := r.schedules.DryRun(r.Context(), &ddqv1.DryRunRequest{Topic: "shop", To: inAn(second)})
		must(r, err)
		if len(plan.GetRuns()) != 1 || plan.GetRuns()[0].GetId() == "" {
			r.Fatalf("planned are %v", plan.GetRuns())
		}
		id := plan.GetRuns()[0].GetId()
		until(2*time.Hour - time.Millisecond)
		if n := len(r.closing().GetStatus().GetOpenRuns()); n != 0 {
			r.Fatalf("%d runs are open before the time", n)
		}
		until(2 * time.Hour)
		count := r.take("shop")
		if late := time.Since(inAn(2 * time.Hour).AsTime()); late > 50*time.Millisecond {
			r.Errorf("it is %v late", late)
		}
		if s := count.Task; s.GetStep().GetWorkflow() != id || string(s.GetStep().GetInput()) != "all" || s.GetSchedule() != "closing" || !s.GetOccurrenceTime().AsTime().Equal(inAn(2*time.Hour).AsTime()) {
			r.Errorf("the task is %v, of %s", count.Task, id)
		}
		r.mustAck("shop", count)
		report := r.take("shop")
		if open := r.closing().GetStatus().GetOpenRuns(); len(open) != 1 || open[0].GetId() != id {
			r.Errorf("open are %v", open)
		}

		until(second + time.Second) // it is not over when the next one comes
		if s := r.flow(id).GetStatus(); s.GetState() != ddqv1.WorkflowState_WORKFLOW_STATE_RUNNING || s.GetSchedule() != "closing" {
			r.Errorf("it is %v", s)
		}
		report = r.held("shop", report)
		r.mustAck("shop", report)
		time.Sleep(time.Second)
		got := r.closing().GetStatus()
		if totals := got.GetTotals(); totals.GetDone() != 1 || totals.GetMade() != 1 || len(totals.GetSkipped()) != 1 || len(got.GetOpenRuns()) != 0 {
			r.Errorf("after the run: %v", got)
		}
		if h := got.GetHistory(); h[len(h)-1].GetId() != id || h[len(h)-1].GetOutcome() != ddqv1.RunOutcome_RUN_OUTCOME_DONE {
			r.Errorf("history: %v", h)
		}
	})
}

// held returns a delivery of a task, or of its next attempt when its hold is over.
func (r *rig) held(topic string, d *ddqv1.Delivery) *ddqv1.Delivery {
	r.Helper()
	next := r.take(topic)
	if next.Task.Id != d.Task.Id {
		r.Fatalf("took %v", next.Task)
	}
	return next
}

// fail fails a task for good.
func (r *rig) fail(d *ddqv1.Delivery) {
	r.Helper()
	_, err := r.queue.Nack(r.Context(), &ddqv1.NackRequest{Topic: "shop", Nack: &ddqv1.Nack{TaskId: d.Task.Id, HoldToken: d.HoldToken, Permanent: true, Error: "no"}})
	must(r, err)
	time.Sleep(time.Second)
}

func (r *rig) triggered(overlap ddqv1.Overlap) *ddqv1.TriggerScheduleResponse {
	r.Helper()
	made, err := r.schedules.TriggerSchedule(r.Context(), &ddqv1.TriggerScheduleRequest{Topic: "shop", Name: "closing", Overlap: overlap})
	must(r, err)
	time.Sleep(time.Second)
	return made
}

// TestScheduledWorkflowThatFails counts as a run that failed, and as open again when it is retried.
func TestScheduledWorkflowThatFails(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		must(r, closed(func(s *ddqv1.Schedule) { s.PauseAfterFailures = 1 })(r))
		id := r.triggered(0).GetId()
		r.fail(r.take("shop"))
		if got := r.closing().GetStatus(); got.GetState() != ddqv1.ScheduleState_SCHEDULE_STATE_PAUSED || got.GetTotals().GetFailed() != 1 {
			r.Errorf("after a failure: %v", got)
		}
		_, err := r.workflows.RetryWorkflow(r.Context(), &ddqv1.RetryWorkflowRequest{Topic: "shop", Id: id})
		must(r, err)
		time.Sleep(time.Second)
		if got := r.closing().GetStatus(); len(got.GetOpenRuns()) != 1 || got.GetOpenRuns()[0].GetId() != id || got.GetTotals().GetFailed() != 0 {
			r.Errorf("after a retry: %v", got)
		}
		r.mustAck("shop", r.take("shop"))
		r.mustAck("shop", r.take("shop"))
		time.Sleep(time.Second)
		if got := r.closing().GetStatus(); len(got.GetOpenRuns()) != 0 || got.GetTotals().GetDone() != 1 {
			r.Errorf("at the end: %v", got)
		}
	})
}

// TestScheduledWorkflowsOverlap has a trigger cancel the workflow before it, and a deletion the one
// that is open.
func TestScheduledWorkflowsOverlap(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		must(r, closed(nil)(r))
		first := r.triggered(0).GetId()
		if _, err := r.schedules.TriggerSchedule(r.Context(), &ddqv1.TriggerScheduleRequest{Topic: "shop", Name: "closing"}); err == nil || !strings.Contains(err.Error(), first) {
			r.Errorf("a second one while %s is open: %v", first, err)
		}
		if made := r.triggered(ddqv1.Overlap_OVERLAP_CANCEL_OTHER); !made.GetWaiting() {
			r.Errorf("made %v", made)
		}
		if s := r.flow(first).GetStatus().GetState(); s != ddqv1.WorkflowState_WORKFLOW_STATE_CANCELLED {
			r.Errorf("the one before is %v", s)
		}
		open := r.closing().GetStatus().GetOpenRuns()
		if len(open) != 1 || open[0].GetId() == first {
			r.Fatalf("open are %v", open)
		}
		if other := r.triggered(ddqv1.Overlap_OVERLAP_ALLOW).GetId(); other == "" || other == open[0].GetId() {
			r.Errorf("beside %s there is %s", open[0].GetId(), other)
		}
		_, err := r.schedules.DeleteSchedule(r.Context(), &ddqv1.DeleteScheduleRequest{Topic: "shop", Name: "closing", OpenRuns: ddqv1.OpenRuns_OPEN_RUNS_CANCEL})
		must(r, err)
		time.Sleep(time.Second)
		if s := r.flow(open[0].GetId()).GetStatus().GetState(); s != ddqv1.WorkflowState_WORKFLOW_STATE_CANCELLED {
			r.Errorf("the last one is %v", s)
		}
	})
}

// TestScheduledWorkflowOfBeforeAReshardIsCancelled by a trigger: it stays in the shard in which it
// began, and the schedule moves.
func TestScheduledWorkflowOfBeforeAReshardIsCancelled(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		must(r, closed(nil)(r))
		first := r.triggered(0).GetId()
		_, err := r.admin.ReshardTopic(r.Context(), &ddqv1.ReshardTopicRequest{Name: "shop", Shards: 5})
		must(r, err)
		time.Sleep(time.Minute)
		if made := r.triggered(ddqv1.Overlap_OVERLAP_CANCEL_OTHER); !made.GetWaiting() {
			r.Errorf("made %v", made)
		}
		if s := r.flow(first).GetStatus().GetState(); s != ddqv1.WorkflowState_WORKFLOW_STATE_CANCELLED {
			r.Errorf("the one before is %v", s)
		}
	})
}

// TestScheduledWorkflowsAreForecast counts the tasks that they begin with.
func TestScheduledWorkflowsAreForecast(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		copies := int32(7)
		must(r, flowed(func(w *ddqv1.Workflow) { w.Steps[0].Copies = &copies })(r))
		got, err := r.schedules.Forecast(r.Context(), &ddqv1.ForecastRequest{Topic: "shop", From: inAn(0), To: inAn(4 * time.Hour), BucketMs: time.Hour.Milliseconds()})
		must(r, err)
		if n := got.GetNext()[2]; n != 7 {
			r.Errorf("%d tasks are due at 2 o'clock: %v", n, got)
		}
	})
}

// TestScheduledWorkflowIsDueLater begins by its jitter, and is not there before: a pause, an edit or a
// deletion until then makes none.
func TestScheduledWorkflowIsDueLater(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		must(r, closed(func(s *ddqv1.Schedule) { s.Timetable.JitterMs = time.Hour.Milliseconds() })(r))
		plan, err := r.schedules.DryRun(r.Context(), &ddqv1.DryRunRequest{Topic: "shop", To: inAn(second)})
		must(r, err)
		run := plan.GetRuns()[0]
		due := run.GetDue().AsTime()
		absent := func(when string) {
			t.Helper()
			if got, err := r.workflows.GetWorkflow(r.Context(), &ddqv1.GetWorkflowRequest{Topic: "shop", Id: run.GetId()}); status.Code(err) != codes.NotFound {
				r.Errorf("%s: %v, %v", when, got, err)
			}
		}
		until(2*time.Hour + time.Second)
		absent("at the time of the schedule")
		time.Sleep(time.Until(due) - time.Millisecond)
		absent("a millisecond before")
		time.Sleep(time.Until(due))
		if d := r.take("shop"); d.Task.GetStep().GetName() != "count" {
			r.Errorf("took %v", d.Task)
		}
		if s := r.flow(run.GetId()).GetStatus(); s.GetStartedAt().AsTime() != due {
			r.Errorf("it began at %v, want %v", s.GetStartedAt().AsTime(), due)
		}
	})
}

// TestBackfillOfAWorkflow makes runs one after the other.
func TestBackfillOfAWorkflow(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		must(r, closed(func(s *ddqv1.Schedule) {
			s.Timetable = cron("0 2 * * *")
			s.GetWorkflow().Steps = s.GetWorkflow().Steps[:1]
		})(r))
		time.Sleep(time.Hour)
		from, to := inAn(-72*time.Hour).AsTime(), inAn(0).AsTime()
		_, err := r.schedules.BackfillSchedule(r.Context(), &ddqv1.BackfillScheduleRequest{
			Topic: "shop", Name: "closing", From: timestamppb.New(from), To: timestamppb.New(to), Id: "again",
		})
		must(r, err)
		for range 3 {
			if open := r.closing().GetStatus().GetOpenRuns(); len(open) != 1 {
				r.Errorf("open are %v", open)
			}
			r.mustAck("shop", r.take("shop"))
			time.Sleep(time.Second)
		}
		if got := r.closing().GetStatus(); got.GetTotals().GetDone() != 3 || len(got.GetBackfills()) != 0 {
			r.Errorf("at the end: %v", got)
		}
	})
}
