package workflows_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/api/service/workflows"
	"github.com/ddq-io/ddq/store"
)

// in is a step whose task is in a topic, and brings a payload of so many bytes.
func in(topic, name string, payload int) graph.Step {
	return graph.Step{Name: name, Task: &graph.Template{Topic: topic, Task: store.Task{MaxRetries: -1, Payload: make([]byte, payload)}}}
}

// of is a workflow of steps.
func of(id string, steps ...graph.Step) *workflows.Submit {
	return &workflows.Submit{Topic: "mail", ID: id, Definition: graph.Definition{Steps: steps}}
}

// TestEachTaskFitsItsTopic is refused by the policy of the topic that the task goes to, and not by that
// of the workflow's.
func TestEachTaskFitsItsTopic(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		small, short := 10, time.Hour
		for name, change := range map[string]service.TopicChange{"mail": {}, "small": {MaxPayload: &small}, "short": {MaxDelay: &short}} {
			if _, err := s.Topics.Create(t.Context(), name, change); err != nil {
				t.Fatal(err)
			}
		}
		late := in("short", "a", 1)
		late.Task.Delay = 2 * time.Hour
		undone := in("mail", "a", 1)
		undone.Undo = in("small", "u", 11).Task
		child := graph.Step{Name: "sub", Child: &graph.Child{Definition: graph.Definition{Steps: []graph.Step{in("small", "x", 11)}}}}
		away := graph.Step{Name: "sub", Child: &graph.Child{Topic: "small", Definition: graph.Definition{Steps: []graph.Step{in("mail", "x", 11), in("", "y", 11)}}}}
		for what, c := range map[string]struct {
			step          graph.Step
			reason, field string
		}{
			"as large as it may be":  {in("small", "a", 10), "", ""},
			"too large there":        {in("small", "a", 11), "PAYLOAD_TOO_LARGE", "steps[0].task.payload"},
			"too large at home only": {in("mail", "a", 11), "", ""},
			"too late there":         {late, "DELAY_TOO_LONG", "steps[0].task.delay"},
			"an undo too large":      {undone, "PAYLOAD_TOO_LARGE", "steps[0].undo.payload"},
			"in a child":             {child, "PAYLOAD_TOO_LARGE", "steps[0].child.steps[0].task.payload"},
			"in a child elsewhere":   {away, "PAYLOAD_TOO_LARGE", "steps[0].child.steps[1].task.payload"},
			"a name that is none":    {in("no topic", "a", 1), "BAD_NAME", "steps[0].task.topic"},
		} {
			_, err := s.Workflows.Submit(t.Context(), of(strings.ReplaceAll(what, " ", "-"), c.step))
			e := problem.FromStore(err)
			switch {
			case c.reason == "" && err != nil:
				t.Errorf("%s: %v", what, err)
			case c.reason != "" && (e == nil || e.Reason != c.reason || e.Field != c.field):
				t.Errorf("%s: %v, want %s of %s", what, e, c.reason, c.field)
			}
		}
	})
}

// TestAddressesOfWorkflowsAreBounded has the task of a step name its workflow, in a cell of which the name
// is bounded.
func TestAddressesOfWorkflowsAreBounded(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		home := strings.Repeat("t", 128)
		for n, want := range map[int]string{126: "", 127: "WORKFLOW_TOO_LARGE"} {
			w := of(strings.Repeat("i", n), in("audit", "a", 1))
			w.Topic = home
			if _, err := s.Workflows.Submit(t.Context(), w); servicetest.ReasonOf(err) != want {
				t.Errorf("an id of %d characters: %v", n, err)
			}
			w = of(strings.Repeat("j", n), in(home, "a", 1)) // which is no other one
			w.Topic = home
			if _, err := s.Workflows.Submit(t.Context(), w); err != nil {
				t.Error(err)
			}
		}
		servicetest.Idle(time.Second)
		if status, _, err := s.Workflows.Get(t.Context(), home, strings.Repeat("i", 126), false); err != nil || status.State != workflow.Running {
			t.Errorf("%+v, %v", status, err)
		}
	})
}

// TestAChildInAnotherTopicIsItsParents: the child, and the tasks of its steps, are not changed by themselves.
func TestAChildInAnotherTopicIsItsParents(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		child := graph.Step{Name: "sub", Child: &graph.Child{Topic: "audit", Definition: graph.Definition{Steps: []graph.Step{in("", "x", 1)}}}}
		if _, err := s.Workflows.Submit(t.Context(), of("w", child)); err != nil {
			t.Fatal(err)
		}
		servicetest.Idle(time.Second)
		_, steps, err := s.Workflows.Get(t.Context(), "mail", "w", true)
		if err != nil || len(steps) != 1 || steps[0].Topic != "audit" {
			t.Fatalf("%+v, %v", steps, err)
		}
		id := steps[0].Task
		if _, err := s.Workflows.Cancel(t.Context(), t.Context(), "audit", id, "", 0); servicetest.ReasonOf(err) != "CHILD_WORKFLOW" {
			t.Errorf("a cancel of the child: %v", err)
		}
		_, steps, err = s.Workflows.Get(t.Context(), "audit", id, true)
		if err != nil || len(steps) != 1 || steps[0].State != workflow.UnitMade {
			t.Fatalf("%+v, %v", steps, err)
		}
		if _, err := s.Tasks.Delete(t.Context(), "audit", steps[0].Task); servicetest.ReasonOf(err) != "STEP_OF_WORKFLOW" {
			t.Errorf("a delete of the task of its step: %v", err)
		}
	})
}
