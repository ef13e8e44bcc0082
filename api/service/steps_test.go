package service_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/api/service/workflows"
	"github.com/ddq-io/ddq/store"
)

// ownedTask submits workflow w of mail, whose step is a task of a topic, and returns the task's id.
func ownedTask(t *testing.T, s *service.Service, topic string, delay time.Duration) string {
	t.Helper()
	task := &graph.Template{Topic: topic, Delay: delay, Task: store.Task{MaxRetries: 0}}
	d := graph.Definition{Steps: []graph.Step{{Name: "a", Task: task}}}
	if _, err := s.Workflows.Submit(t.Context(), &workflows.Submit{Topic: "mail", ID: "w", Definition: d}); err != nil {
		t.Fatal(err)
	}
	servicetest.Idle(time.Second)
	_, steps, err := s.Workflows.Get(t.Context(), "mail", "w", true)
	if err != nil || steps[0].Task == "" {
		t.Fatal(steps, err)
	}
	return steps[0].Task
}

// wantOwned looks whether a call is refused, and its message names the call to make.
func wantOwned(t *testing.T, what string, err error, call string) {
	t.Helper()
	e := problem.FromStore(err)
	if e == nil || e.Kind != problem.Precondition || e.Reason != "STEP_OF_WORKFLOW" || !strings.Contains(e.Message, call) || !strings.Contains(e.Message, `"w"`) {
		t.Errorf("%s: %v", what, err)
	}
}

// TestAStepsTaskIsItsWorkflows is refused to be deleted, here and in another topic: the workflow is to
// be cancelled. With force it goes, and the step fails.
func TestAStepsTaskIsItsWorkflows(t *testing.T) {
	for _, topic := range []string{"mail", "audit"} {
		servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
			id := ownedTask(t, s, topic, time.Hour)
			_, err := s.Tasks.Delete(t.Context(), topic, id)
			wantOwned(t, "delete", err, "CancelWorkflow")
			_, err = s.Tasks.Delete(t.Context(), "", id)
			wantOwned(t, "delete in any topic", err, "CancelWorkflow")
			_, err = s.Tasks.Cancel(t.Context(), t.Context(), topic, id, 0, true)
			wantOwned(t, "cancel or delete", err, "CancelWorkflow")
			servicetest.EnqueueOne(t, s, servicetest.After(topic, "other", time.Hour))
			var last service.Progress
			states := service.TaskFilter{States: []store.State{store.StateScheduled}}
			err = s.Bulk.Delete(t.Context(), service.Bulk{Topic: topic, Filter: states}, func(p service.Progress) error { last = p; return nil })
			if err != nil || last.Matched != 2 || last.Changed != 1 || last.Skipped != 1 {
				t.Errorf("a delete by filter is %+v, %v", last, err)
			}
			servicetest.EnqueueOne(t, s, servicetest.After(topic, "another", time.Hour))
			if done, err := s.Topics.Purge(t.Context(), topic); err != nil || done != (service.Purged{Deleted: 1, Skipped: 1}) {
				t.Errorf("a purge is %+v, %v", done, err)
			}
			if _, err := s.Tasks.ForceDelete(t.Context(), topic, id); err != nil {
				t.Error(err)
			}
			servicetest.Idle(time.Second)
			status, steps, err := s.Workflows.Get(t.Context(), "mail", "w", true)
			if err != nil || status.State != workflow.Failed || steps[0].Why != workflow.WhyDeleted {
				t.Errorf("it is %+v of %+v, %v", status, steps, err)
			}
		})
	}
}

// TestADeadStepIsItsWorkflowsToRetry is refused to be requeued by id, and skipped by filter, while the
// workflow is there. Deleting it is nobody's business.
func TestADeadStepIsItsWorkflowsToRetry(t *testing.T) {
	for _, topic := range []string{"mail", "audit"} {
		servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
			w := servicetest.Subscribe(t, s, topic, 10)
			id := ownedTask(t, s, topic, 0)
			other := servicetest.After(topic, "other", 0)
			other.Task.MaxRetries = 0
			if out, err := s.Tasks.Enqueue(t.Context(), []service.NewTask{other}); err != nil || out[0].Err != nil {
				t.Fatal(out, err)
			}
			servicetest.Idle(time.Second)
			for _, d := range w.Take() {
				w.Settle(subscription.SettleNack, d)
			}
			servicetest.Idle(time.Second)
			_, err := s.DeadLetters.Requeue(t.Context(), topic, []string{"other", id}, service.DeadFilter{}, service.Pace{})
			wantOwned(t, "requeue", err, "RetryWorkflow")
			if e := problem.FromStore(err); e.Field != "ids" {
				t.Errorf("its field is %q", e.Field)
			}
			count, err := s.DeadLetters.Count(t.Context(), topic, service.DeadFilter{}, service.DryRun{Most: 100, Requeue: true})
			if err != nil || count != (service.Progress{Matched: 2, Skipped: 1, Examined: 2}) {
				t.Errorf("a dry run counts %+v, %v", count, err)
			}
			done, err := s.DeadLetters.Requeue(t.Context(), topic, nil, service.DeadFilter{}, service.Pace{})
			if err != nil || done.Count != 1 || done.Skipped != 1 {
				t.Errorf("a requeue by filter is %+v, %v", done, err)
			}
			if _, err := s.Workflows.Delete(t.Context(), "mail", "w"); err != nil {
				t.Fatal(err)
			}
			done, err = s.DeadLetters.Requeue(t.Context(), topic, []string{id}, service.DeadFilter{}, service.Pace{})
			if err != nil || done.Count != 1 {
				t.Errorf("once the workflow is gone a requeue is %+v, %v", done, err)
			}
		})
	}
}

// TestTheTasksOfOthersAreAnybodys looks like a step's, by its id.
func TestTheTasksOfOthersAreAnybodys(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		task := servicetest.After("mail", "", time.Hour)
		task.Task.Key, task.Task.MaxRetries = &store.Key{Text: "k"}, -1
		out, err := s.Tasks.Enqueue(t.Context(), []service.NewTask{task})
		if err != nil || out[0].Err != nil {
			t.Fatal(out, err)
		}
		if _, err := s.Tasks.Delete(t.Context(), "mail", out[0].ID); err != nil {
			t.Error(err)
		}
	})
}
