package server

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// bury has a task of a topic fail for good.
func (r *rig) bury(topic string, d *ddqv1.Delivery) {
	r.Helper()
	nack := &ddqv1.Nack{TaskId: d.Task.Id, HoldToken: d.HoldToken, Permanent: true, Error: "no"}
	_, err := r.queue.Nack(r.Context(), &ddqv1.NackRequest{Topic: topic, Nack: nack})
	must(r, err)
	time.Sleep(time.Second)
}

// chargeLater submits an order whose charge is due in an hour, and returns the id of its task.
func (r *rig) chargeLater() string {
	r.Helper()
	must(r, stepped(0, func(s *ddqv1.Step) {
		s.Does = &ddqv1.Step_Task{Task: &ddqv1.TaskTemplate{Delay: durationpb.New(time.Hour)}}
	})(r))
	got, err := r.workflows.GetWorkflow(r.Context(), &ddqv1.GetWorkflowRequest{Id: "order-17", View: ddqv1.WorkflowView_WORKFLOW_VIEW_STEPS})
	must(r, err)
	return got.Steps[0].Id
}

// TestAStepsTaskGoesWithForce, or with its workflow: purge and what goes by filter leave it, and say so.
func TestAStepsTaskGoesWithForce(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		id := r.chargeLater()
		purged, err := r.admin.PurgeTopic(r.Context(), &ddqv1.PurgeTopicRequest{Name: "orders"})
		if must(r, err); purged.Deleted != 0 || purged.Skipped != 1 {
			t.Errorf("the purge is %v", purged)
		}
		last := r.deleteTasks(&ddqv1.DeleteTasksRequest{Topic: "orders", Filter: &ddqv1.TaskFilter{States: []ddqv1.TaskState{ddqv1.TaskState_TASK_STATE_SCHEDULED}}})
		if last.Matched != 1 || last.Changed != 0 || last.Skipped != 1 {
			t.Errorf("the delete by filter is %v", last)
		}
		_, err = r.queue.DeleteTask(r.Context(), &ddqv1.DeleteTaskRequest{Topic: "orders", Id: id, Force: true})
		must(r, err)
		time.Sleep(time.Second)
		got, err := r.workflows.GetWorkflow(r.Context(), &ddqv1.GetWorkflowRequest{Id: "order-17"})
		if must(r, err); got.Status.FailedStep != "charge" {
			t.Errorf("it is %v", got)
		}
	})
}

// TestDeadStepsAreSkipped by a requeue of all dead letters.
func TestDeadStepsAreSkipped(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		must(r, submitted(nil)(r))
		r.bury("orders", r.take("orders"))
		done, err := r.admin.RequeueDeadLetters(r.Context(), &ddqv1.RequeueDeadLettersRequest{Topic: "orders", Filter: &ddqv1.DeadLetterFilter{ErrorContains: "no"}})
		if must(r, err); done.Requeued != 0 || done.Skipped != 1 {
			t.Errorf("the requeue is %v", done)
		}
	})
}

// TestStepsElsewhereAreForThoseWhoMayEnqueueThere: a workflow needs that of every topic that it names, and
// so does growth.
func TestStepsElsewhereAreForThoseWhoMayEnqueueThere(t *testing.T) {
	guardedBubble(t, func(r *guardedRig) {
		flows := ddqv1.NewWorkflowServiceClient(r.conn)
		there := func(topic string) []*ddqv1.Step {
			return []*ddqv1.Step{{Name: "a", Does: &ddqv1.Step_Task{Task: &ddqv1.TaskTemplate{Topic: topic}}}}
		}
		undone := []*ddqv1.Step{{Name: "a", Undo: &ddqv1.TaskTemplate{Topic: "audit"}}}
		nested := []*ddqv1.Step{{Name: "a", Does: &ddqv1.Step_Child{Child: &ddqv1.Workflow{Steps: there("audit")}}}}
		one, _ := r.token(0, "producer:orders")
		both, _ := r.token(0, "producer:orders", "producer:audit")
		for what, steps := range map[string][]*ddqv1.Step{"a-task": there("audit"), "an-undo": undone, "a-child": nested} {
			w := &ddqv1.Workflow{Topic: "orders", Id: what, Steps: steps}
			if _, err := flows.SubmitWorkflow(r.as(one), &ddqv1.SubmitWorkflowRequest{Workflow: w}); status.Code(err) != codes.PermissionDenied {
				t.Errorf("%s: %v", what, err)
			}
			if _, err := flows.SubmitWorkflow(r.as(both), &ddqv1.SubmitWorkflowRequest{Workflow: w}); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		worker, _ := r.token(0, "worker:audit", "producer:audit")
		got, err := r.queue.Retrieve(r.as(worker), &ddqv1.RetrieveRequest{Topic: "audit", WaitMs: 10_000})
		if err != nil || len(got.Deliveries) != 1 {
			t.Fatal(got, err)
		}
		ack := &ddqv1.Ack{TaskId: got.Deliveries[0].Task.Id, HoldToken: got.Deliveries[0].HoldToken}
		for i, topic := range []string{"orders", ""} { // the workflow's own, and that of the task
			ack.Grow = &ddqv1.Growth{Steps: there(topic)}
			_, err := r.queue.Ack(r.as(worker), &ddqv1.AckRequest{Topic: "audit", Ack: ack})
			if want := []codes.Code{codes.PermissionDenied, codes.OK}[i]; status.Code(err) != want {
				t.Errorf("growth in topic %q: %v, want %v", topic, err, want)
			}
		}
	})
}
