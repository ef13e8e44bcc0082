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

// childIn is a step that is a workflow of another topic.
func childIn(topic, name string, steps ...graph.Step) graph.Step {
	return graph.Step{Name: name, Child: &graph.Child{Topic: topic, Definition: graph.Definition{Retention: time.Hour, Steps: steps}}}
}

// childOf is the child of a step in another topic, as it stands there.
func (f *flows) childOf(id, step string) workflow.Status {
	f.Helper()
	_, steps := f.get(id)
	of := steps[step]
	s, _, err := f.Get(f.Context(), f.openOther(of.Topic), of.Task, false, true)
	if err != nil {
		f.Fatal(err)
	}
	return s
}

// TestAChildInAnotherTopic goes there and back, with a child of its own that is where its parent is not.
func TestAChildInAnotherTopic(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		home, away := servicetest.Subscribe(t, s, "mail", 100), servicetest.Subscribe(t, s, "audit", 100)
		f := flowsOf(t, s.Node())
		audit := f.openOther("audit")
		inner := childIn("mail", "inner", taskStep("x"), stepIn("audit", "y", "x"))
		last := taskStep("z", "inner")
		f.submit("w", &graph.Definition{Retention: time.Minute, Steps: []graph.Step{taskStep("a"), after(childIn("audit", "sub", inner, last), "a"), taskStep("b", "sub")}})
		began := time.Now()
		for _, c := range []struct {
			name, topic, input string
			w                  *servicetest.Stream
		}{{"a", "", "", home}, {"x", "", "", home}, {"y", "mail", "x!", away}, {"z", "", "y!", away}, {"b", "", "z!", home}} {
			servicetest.Idle(40 * time.Millisecond)
			d := c.w.TakeOne()
			of := d.Task.StepOf
			if of == nil || of.Name != c.name || of.Topic != c.topic || c.input != "" && string(of.Inputs[0].Result) != c.input {
				t.Fatalf("the task is of %+v, want %s of %q", of, c.name, c.topic)
			}
			ack(c.w, d, c.name+"!")
		}
		servicetest.Idle(20 * time.Millisecond)
		status, steps := f.get("w")
		if status.State != workflow.Done || string(status.Result) != "b!" || steps["sub"].Topic != "audit" {
			t.Errorf("after %v it is %+v of %+v", time.Since(began), status, steps)
		}
		if child := f.childOf("w", "sub"); child.State != workflow.Done || string(child.Result) != "z!" {
			t.Errorf("its child is %+v", child)
		}
		servicetest.Idle(2 * time.Hour)
		if stats := f.stats(); stats.Parcels != 0 || f.pendingIn(audit) != 0 {
			t.Errorf("a minute after its end there is %+v", stats)
		}
		if _, _, err := f.Get(t.Context(), audit, steps["sub"].Task, false, false); err == nil {
			t.Error("its child is there still")
		}
	})
}

// after has a step wait for others.
func after(s graph.Step, names ...string) graph.Step {
	for _, name := range names {
		s.After = append(s.After, graph.After{Step: name})
	}
	return s
}

// TestAChildFailsInAnotherTopic is a failed step, and another child when that is retried.
func TestAChildFailsInAnotherTopic(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "audit", 100)
		f := flowsOf(t, s.Node())
		f.openOther("audit")
		f.submit("w", &graph.Definition{Steps: []graph.Step{childIn("audit", "sub", taskStep("x")), taskStep("z", "sub")}})
		answer := func(*store.StepOf) (string, bool) { return "boom", false }
		workOff(t, w, 8, answer)
		status, steps := f.get("w")
		if status.State != workflow.Failed || status.Error != "STEP_FAILED: x: boom" || steps["z"].State != workflow.UnitSkipped || steps["sub"].Why != workflow.WhyChild {
			t.Errorf("it is %+v of %+v", status, steps)
		}
		first := steps["sub"].Task
		if _, err := f.Change(t.Context(), f.openOther("audit"), first, workflow.Retry{}); err == nil {
			t.Error("a child is retried by itself")
		}
		if _, err := f.Change(t.Context(), f.topic, "w", workflow.Retry{}); err != nil {
			t.Fatal(err)
		}
		workOff(t, w, 8, func(*store.StepOf) (string, bool) { return "ok", true })
		if _, steps := f.get("w"); steps["sub"].State != workflow.UnitDone || steps["sub"].Task == first || string(steps["sub"].Result) != "ok" {
			t.Errorf("after the retry its steps are %+v", steps)
		}
	})
}

// TestAChildInAnotherTopicIsAskedToEnd by a cancel, by a timeout and by a step that needs it no more.
func TestAChildInAnotherTopicIsAskedToEnd(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		f := flowsOf(t, s.Node())
		audit := f.openOther("audit")
		wait := graph.Step{Name: "soon", Wait: &graph.Wait{Delay: time.Minute}}
		any := after(taskStep("any"), "sub", "soon")
		any.Need, any.CancelRest = 1, true
		sub := childIn("audit", "sub", taskStep("x"))
		f.submit("cancelled", &graph.Definition{Steps: []graph.Step{sub}})
		f.submit("late", &graph.Definition{Timeout: time.Minute, Failure: graph.CancelRunning, Steps: []graph.Step{sub}})
		f.submit("any", &graph.Definition{Steps: []graph.Step{sub, wait, any}})
		servicetest.Idle(time.Second)
		if n := f.pendingIn(audit); n != 3 {
			t.Fatalf("%d tasks are pending there", n)
		}
		if _, err := f.Change(t.Context(), f.topic, "cancelled", workflow.Cancel{}); err != nil {
			t.Fatal(err)
		}
		servicetest.Idle(2 * time.Second)
		if status, _ := f.get("cancelled"); status.State != workflow.Cancelled || f.pendingIn(audit) != 2 {
			t.Errorf("the one that is cancelled is %+v", status)
		}
		servicetest.Idle(time.Minute)
		if status, _ := f.get("late"); status.State != workflow.Failed || status.Cause != workflow.CauseTimedOut {
			t.Errorf("the one that is late is %+v", status)
		}
		if _, steps := f.get("any"); steps["sub"].State != workflow.UnitCancelled || steps["any"].State != workflow.UnitMade {
			t.Errorf("that of which one is enough has %+v", steps)
		}
		for _, id := range []string{"cancelled", "late", "any"} {
			if child := f.childOf(id, "sub"); child.State != workflow.Cancelled {
				t.Errorf("the child of %s is %+v", id, child)
			}
		}
		if n := f.pendingIn(audit); n != 0 {
			t.Errorf("%d tasks are pending there", n)
		}
	})
}

// TestAPauseReachesAnotherTopic lets nothing be made there until the parent goes on.
func TestAPauseReachesAnotherTopic(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "audit", 100)
		f := flowsOf(t, s.Node())
		f.openOther("audit")
		f.submit("w", &graph.Definition{Steps: []graph.Step{childIn("audit", "sub", taskStep("x"), taskStep("y", "x"))}})
		servicetest.Idle(time.Second)
		if _, err := f.Change(t.Context(), f.topic, "w", workflow.Pause{By: "ada"}); err != nil {
			t.Fatal(err)
		}
		servicetest.Idle(time.Second)
		ack(w, w.TakeOne(), "x!")
		servicetest.Idle(time.Hour)
		if child := f.childOf("w", "sub"); child.State != workflow.Paused || len(w.Take()) > 0 {
			t.Errorf("while its parent is paused it is %+v", child)
		}
		if _, err := f.Change(t.Context(), f.topic, "w", workflow.Resume{}); err != nil {
			t.Fatal(err)
		}
		servicetest.Idle(time.Second)
		ack(w, w.TakeOne(), "y!")
		servicetest.Idle(time.Second)
		if status, _ := f.get("w"); status.State != workflow.Done || string(status.Result) != "y!" {
			t.Errorf("it is %+v", status)
		}
	})
}

// TestAChildWaitsForItsTopic has that be paused, and what is asked of the child meanwhile: it is taken
// back, or does it when it arrives.
func TestAChildWaitsForItsTopic(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "audit", 10)
		f := flowsOf(t, s.Node())
		f.openOther("audit")
		pause := func(paused bool) {
			if _, err := s.Topics.Configure(t.Context(), "audit", service.TopicChange{EnqueuePaused: &paused}); err != nil {
				t.Fatal(err)
			}
		}
		pause(true)
		for _, id := range []string{"w", "cancelled", "paused"} {
			f.submit(id, &graph.Definition{Steps: []graph.Step{childIn("audit", "sub", taskStep("x"), taskStep("y", "x"))}})
		}
		servicetest.Idle(3 * time.Hour) // the workflows are looked through meanwhile
		if _, err := f.Change(t.Context(), f.topic, "cancelled", workflow.Cancel{}); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Change(t.Context(), f.topic, "paused", workflow.Pause{By: "ada"}); err != nil {
			t.Fatal(err)
		}
		servicetest.Idle(10 * time.Second)
		if status, _ := f.get("cancelled"); status.State != workflow.Cancelled {
			t.Errorf("the one that is cancelled is %+v", status)
		}
		if status, steps := f.get("w"); status.State != workflow.Running || steps["sub"].State != workflow.UnitMade {
			t.Errorf("it is %+v of %+v", status, steps)
		}
		pause(false)
		servicetest.Idle(10 * time.Second)
		if child := f.childOf("paused", "sub"); child.State != workflow.Paused {
			t.Errorf("the child of the one that is paused is %+v", child)
		}
		workOff(t, w, 8, func(of *store.StepOf) (string, bool) { return of.Name, true })
		if status, _ := f.get("w"); status.State != workflow.Done {
			t.Errorf("it is %+v", status)
		}
		if _, err := f.Change(t.Context(), f.topic, "paused", workflow.Resume{}); err != nil {
			t.Fatal(err)
		}
		workOff(t, w, 8, func(of *store.StepOf) (string, bool) { return of.Name, true })
		if status, _ := f.get("paused"); status.State != workflow.Done {
			t.Errorf("the one that was paused is %+v", status)
		}
	})
}

// TestTheTopicOfAChildIsDeleted has its step fail: while the child is there, and when its parent is
// cancelled before that is found. The topic may be there again by then.
func TestTheTopicOfAChildIsDeleted(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		f := flowsOf(t, s.Node())
		f.openOther("audit")
		f.openOther("other")
		for id, topic := range map[string]string{"w": "audit", "again": "other", "cancelled": "audit"} {
			f.submit(id, &graph.Definition{Steps: []graph.Step{childIn(topic, "sub", taskStep("x"))}})
		}
		servicetest.Idle(time.Second)
		for _, name := range []string{"audit", "other"} {
			if err := s.Topics.Delete(t.Context(), name, true); err != nil {
				t.Fatal(err)
			}
		}
		servicetest.Idle(time.Minute)
		f.openOther("other")
		if _, err := f.Change(t.Context(), f.topic, "cancelled", workflow.Cancel{}); err != nil {
			t.Fatal(err)
		}
		servicetest.Idle(10 * time.Second)
		if status, _ := f.get("cancelled"); status.State != workflow.Cancelled {
			t.Errorf("the one that is cancelled is %+v", status)
		}
		servicetest.Idle(2 * time.Hour)
		for _, id := range []string{"w", "again"} {
			if status, steps := f.get(id); status.State != workflow.Failed || steps["sub"].Why != workflow.WhyDeleted {
				t.Errorf("%s is %+v of %+v", id, status, steps)
			}
		}
	})
}

// TestAnIDOfAChildIsTaken has a workflow whose id another one had, the children of which are kept still:
// its own, which it begins with and later on, are called otherwise.
func TestAnIDOfAChildIsTaken(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 100)
		f := flowsOf(t, s.Node())
		seen := make(map[string]bool)
		for _, name := range []string{"first", "second", "third"} {
			d := &graph.Definition{Name: name, Steps: []graph.Step{childIn("", "now", taskStep("x")), taskStep("a", "now"), after(childIn("", "later", taskStep("x")), "a")}}
			f.submit("w", d)
			workOff(t, w, 10, func(of *store.StepOf) (string, bool) { return of.Name + "!", true })
			status, steps := f.get("w")
			if status.State != workflow.Done || string(status.Result) != "x!" {
				t.Errorf("the %s one is %+v of %+v", name, status, steps)
			}
			for _, step := range []string{"now", "later"} {
				id := steps[step].Task
				if plain := id == "w/"+step; plain != (name == "first") || seen[id] {
					t.Errorf("child %s of the %s one is %s", step, name, id)
				}
				seen[id] = true
			}
		}
	})
}
