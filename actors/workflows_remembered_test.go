package actors_test

import (
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
)

// always answers steps with an ack.
func always(*store.StepOf) (string, bool) { return "ok", true }

// TestAWorkflowThatOthersChangedIsReadAgain has a call change a workflow that its owner committed last.
func TestAWorkflowThatOthersChangedIsReadAgain(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 100)
		f := flowsOf(t, s.Node())
		f.submit("w", &graph.Definition{Steps: []graph.Step{taskStep("a"), taskStep("b", "a"), taskStep("c", "b")}})
		workOff(t, w, 1, always)
		servicetest.Idle(5 * time.Millisecond) // the owner remembers that b is made
		if _, err := f.Change(t.Context(), f.topic, "w", workflow.Pause{}); err != nil {
			t.Fatal(err)
		}
		if names := workOff(t, w, 2, always); len(names) != 1 {
			t.Errorf("%v were made of a workflow that is paused", names)
		}
		status, steps := f.get("w")
		if status.State != workflow.Paused || steps["b"].State != workflow.UnitDone || steps["c"].Try != 0 {
			t.Errorf("it is %+v of %+v", status, steps)
		}
		if _, err := f.Change(t.Context(), f.topic, "w", workflow.Resume{}); err != nil {
			t.Fatal(err)
		}
		workOff(t, w, 2, always)
		servicetest.Idle(5 * time.Millisecond)
		if status, _ := f.get("w"); status.State != workflow.Done {
			t.Errorf("in the end it is %+v", status)
		}
	})
}

// TestAWorkflowIsNotTakenForOneThatHadItsID makes another workflow of an id after as many changes as the owner
// remembers of the first one.
func TestAWorkflowIsNotTakenForOneThatHadItsID(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 100)
		f := flowsOf(t, s.Node())
		d := &graph.Definition{Steps: []graph.Step{taskStep("a"), {Name: "wait", Wait: &graph.Wait{Signal: "go"}}, taskStep("b", "a", "wait")}}
		f.submit("w", d)
		workOff(t, w, 1, always)
		servicetest.Idle(5 * time.Millisecond)
		remembered, _ := f.get("w")
		for _, e := range []workflow.Event{workflow.Cancel{}, workflow.Delete{}} {
			if _, err := f.Change(t.Context(), f.topic, "w", e); err != nil {
				t.Fatal(err)
			}
		}
		f.submit("w", d)
		again, err := f.Change(t.Context(), f.topic, "w", workflow.Pause{})
		if err != nil || again.Version == remembered.Version {
			t.Fatalf("it is at version %d, and the one before was at %d: %v", again.Version, remembered.Version, err)
		}
		if err := f.Signal(t.Context(), f.topic, "w", workflow.Signal{Name: "go", ID: "1"}); err != nil {
			t.Fatal(err)
		}
		servicetest.Idle(5 * time.Millisecond)
		if status, steps := f.get("w"); status.State != workflow.Paused || steps["a"].State != workflow.UnitMade || steps["wait"].State != workflow.UnitDone {
			t.Errorf("it is %+v of %+v", status, steps)
		}
		if _, err := f.Change(t.Context(), f.topic, "w", workflow.Resume{}); err != nil {
			t.Fatal(err)
		}
		if names := workOff(t, w, 2, always); len(names) != 2 {
			t.Errorf("%v were made", names)
		}
		servicetest.Idle(5 * time.Millisecond)
		if status, _ := f.get("w"); status.State != workflow.Done {
			t.Errorf("in the end it is %+v", status)
		}
	})
}
