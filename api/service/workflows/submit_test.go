package workflows_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/actors/workflow/access"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/api/service/workflows"
	"github.com/ddq-io/ddq/store"
)

// named is a workflow of one task, with a name by which two of an id are not the same.
func named(id, name string) *workflows.Submit {
	task := &graph.Template{Task: store.Task{MaxRetries: -1}}
	return &workflows.Submit{Topic: "mail", ID: id, Definition: graph.Definition{Name: name, Steps: []graph.Step{{Name: "a", Task: task}}}}
}

// TestAFinishedWorkflowGivesItsIDAway submits the same, and another one, while one is open and
// when it is done.
func TestAFinishedWorkflowGivesItsIDAway(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 10)
		submit := func(what, name, reason string, want access.Submitted) {
			t.Helper()
			got, err := s.Workflows.Submit(t.Context(), named("w", name))
			if servicetest.ReasonOf(err) != reason || got.Deduplicated != want.Deduplicated || got.Replaced != want.Replaced {
				t.Errorf("%s: %+v, %v", what, got, err)
			}
		}
		submit("the first", "one", "", access.Submitted{})
		submit("the same again", "one", "", access.Submitted{Deduplicated: true})
		submit("another one while it is open", "two", "ID_CONFLICT", access.Submitted{})
		servicetest.Idle(time.Second)
		w.Settle(subscription.SettleAck, w.TakeOne())
		servicetest.Idle(time.Second)
		submit("the same when it is done", "one", "", access.Submitted{Deduplicated: true})
		submit("another one when it is done", "two", "", access.Submitted{Replaced: workflow.Done})
		servicetest.Idle(time.Second)
		w.TakeOne()
	})
}

// TestWorkflowsWaitForOldNodes has one in the fleet that would tell no workflow of the ends of its
// tasks: none is submitted.
func TestWorkflowsWaitForOldNodes(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		synctest.Wait()
		a := f.Nodes["a"]
		a.ShowOld("b")
		_, err := a.Sys.Workflows.Submit(t.Context(), named("w", "one"))
		if e := problem.FromStore(err); e == nil || e.Reason != "OLD_NODES" || e.Kind != problem.Precondition {
			t.Errorf("a submit is answered with %v", err)
		}
		a.Show(nil)
		if _, err := a.Sys.Workflows.Submit(t.Context(), named("w", "one")); err != nil {
			t.Error(err)
		}
	})
}
