package actors_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors"
	outbox "github.com/ddq-io/ddq/actors/entity/message"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// stepIn is a step whose task is in another topic.
func stepIn(topic, name string, after ...string) graph.Step {
	s := taskStep(name, after...)
	s.Task.Topic = topic
	return s
}

// openOther creates another topic, and returns it.
func (f *flows) openOther(name string) *store.Topic {
	f.Helper()
	ref, err := f.node.Topics().Open(f.Context(), name, true)
	if err != nil {
		f.Fatal(err)
	}
	return ref.Config()
}

// pendingIn is how many tasks of a topic are pending.
func (f *flows) pendingIn(t *store.Topic) (n int64) {
	f.Helper()
	stats, err := f.node.CountsOf(f.Context(), place.Shards(t))
	if err != nil {
		f.Fatal(err)
	}
	for i := range stats {
		n += stats[i].Pending
	}
	return n
}

// TestAStepInAnotherTopic goes to another topic and back, and again.
func TestAStepInAnotherTopic(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		home, away := servicetest.Subscribe(t, s, "mail", 100), servicetest.Subscribe(t, s, "audit", 100)
		f := flowsOf(t, s.Node())
		audit := f.openOther("audit")
		f.submit("w", &graph.Definition{Retention: time.Minute, Steps: []graph.Step{
			taskStep("a"), stepIn("audit", "b", "a"), taskStep("c", "b"), stepIn("audit", "d", "c"),
		}})
		began := time.Now()
		for _, c := range []struct {
			name, topic string
			w           *servicetest.Stream
		}{{"a", "", home}, {"b", "mail", away}, {"c", "", home}, {"d", "mail", away}} {
			servicetest.Idle(20 * time.Millisecond)
			d := c.w.TakeOne()
			if of := d.Task.StepOf; of == nil || of.Name != c.name || of.Topic != c.topic || of.Workflow != "w" {
				t.Fatalf("the task is of %+v, want %s of %q", of, c.name, c.topic)
			}
			ack(c.w, d, c.name+"!")
		}
		servicetest.Idle(20 * time.Millisecond)
		if status, steps := f.get("w"); status.State != workflow.Done || string(status.Result) != "d!" || steps["b"].Topic != "audit" {
			t.Errorf("after %v it is %+v of %+v", time.Since(began), status, steps)
		}
		servicetest.Idle(2 * time.Minute)
		if stats := f.stats(); stats.Parcels != 0 || f.pendingIn(audit) != 0 {
			t.Errorf("a minute after its end there is %+v", stats)
		}
	})
}

// TestCancelReachesAnotherTopic deletes what is pending there, and asks the worker of what runs.
func TestCancelReachesAnotherTopic(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "audit", 1)
		f := flowsOf(t, s.Node())
		audit := f.openOther("audit")
		f.submit("w", &graph.Definition{Steps: []graph.Step{stepIn("audit", "a"), stepIn("audit", "b"), taskStep("c", "a")}})
		servicetest.Idle(20 * time.Millisecond)
		d := w.TakeOne()
		if _, err := f.Change(t.Context(), f.topic, "w", workflow.Cancel{}); err != nil {
			t.Fatal(err)
		}
		servicetest.Idle(20 * time.Millisecond)
		if asked := w.TakeCancels(); len(asked) != 1 || f.pendingIn(audit) != 0 {
			t.Errorf("asked is %+v, and %d tasks are pending", asked, f.pendingIn(audit))
		}
		if status, _ := f.get("w"); status.State != workflow.Cancelling {
			t.Errorf("while one runs it is %+v", status)
		}
		ack(w, d, "done all the same")
		servicetest.Idle(20 * time.Millisecond)
		status, steps := f.get("w")
		if status.State != workflow.Cancelled || steps[d.Task.StepOf.Name].State != workflow.UnitDone {
			t.Errorf("it is %+v of %+v", status, steps)
		}
	})
}

// TestATopicThatIsDeletedUnderWay has its steps fail: those that it has, and those that come.
func TestATopicThatIsDeletedUnderWay(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		f := flowsOf(t, s.Node())
		f.openOther("audit")
		f.submit("w", &graph.Definition{Failure: graph.CarryOn, Steps: []graph.Step{stepIn("audit", "a"), {Name: "later", Wait: &graph.Wait{Delay: time.Minute}}}})
		servicetest.Idle(time.Second)
		if err := s.Topics.Delete(t.Context(), "audit", true); err != nil {
			t.Fatal(err)
		}
		servicetest.Idle(2 * time.Hour)
		if status, steps := f.get("w"); status.State != workflow.Failed || steps["a"].Why != workflow.WhyDeleted {
			t.Errorf("it is %+v of %+v", status, steps)
		}
	})
}

// TestAWorkflowWaitsForAnotherTopic has one be paused: nothing of it is lost or failed.
func TestAWorkflowWaitsForAnotherTopic(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "audit", 1)
		f := flowsOf(t, s.Node())
		f.openOther("audit")
		paused := true
		if _, err := s.Topics.Configure(t.Context(), "audit", service.TopicChange{EnqueuePaused: &paused}); err != nil {
			t.Fatal(err)
		}
		f.submit("w", &graph.Definition{Steps: []graph.Step{stepIn("audit", "a")}})
		f.submit("x", &graph.Definition{Steps: []graph.Step{stepIn("audit", "a")}})
		servicetest.Idle(3 * time.Hour) // the workflows are looked through meanwhile
		if _, err := f.Change(t.Context(), f.topic, "x", workflow.Cancel{}); err != nil {
			t.Fatal(err)
		}
		servicetest.Idle(10 * time.Second)
		if status, _ := f.get("x"); status.State != workflow.Cancelled {
			t.Errorf("the other one is %+v", status)
		}
		if status, steps := f.get("w"); status.State != workflow.Running || steps["a"].State != workflow.UnitMade {
			t.Errorf("it is %+v of %+v", status, steps)
		}
		paused = false
		if _, err := s.Topics.Configure(t.Context(), "audit", service.TopicChange{EnqueuePaused: &paused}); err != nil {
			t.Fatal(err)
		}
		servicetest.Idle(10 * time.Second)
		ack(w, w.TakeOne(), "1")
		servicetest.Idle(time.Second)
		if status, _ := f.get("w"); status.State != workflow.Done {
			t.Errorf("it is %+v", status)
		}
	})
}

// TestGrowthElsewhere is of a step in another topic: what it adds is there, unless it says otherwise.
func TestGrowthElsewhere(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		home, away := servicetest.Subscribe(t, s, "mail", 100), servicetest.Subscribe(t, s, "audit", 100)
		f := flowsOf(t, s.Node())
		f.openOther("audit")
		f.submit("w", &graph.Definition{Steps: []graph.Step{stepIn("audit", "a")}})
		servicetest.Idle(20 * time.Millisecond)
		say, err := (&graph.Growth{Steps: []graph.Step{taskStep("x"), stepIn("mail", "y", "x")}}).Encode()
		if err != nil {
			t.Fatal(err)
		}
		d := away.TakeOne()
		away.Sub.Settle(1, []subscription.Settlement{{Kind: subscription.SettleAck, ID: d.Task.ID, Token: d.Token, Say: say}})
		servicetest.Idle(20 * time.Millisecond)
		x := away.TakeOne()
		ack(away, x, "x!")
		servicetest.Idle(20 * time.Millisecond)
		y := home.TakeOne()
		ack(home, y, "y!")
		servicetest.Idle(20 * time.Millisecond)
		if status, steps := f.get("w"); status.State != workflow.Done || steps["a.x"].Topic != "audit" || steps["a.y"].Topic != "" {
			t.Errorf("it is %+v of %+v", status, steps)
		}
	})
}

// TestParcelsThatNobodyTellsOfArrive is told by the store alone that some are there: as many each time.
func TestParcelsThatNobodyTellsOfArrive(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		f := flowsOf(t, s.Node())
		audit := f.openOther("audit")
		from := place.Shards(f.topic)[0]
		for n := range int64(3) {
			p, err := outbox.Parcel("audit", &store.Task{ID: fmt.Sprint("t", n), Due: store.Millis(time.Now().Add(time.Hour).UnixMilli())})
			if err != nil {
				t.Fatal(err)
			}
			_, results, err := s.Node().Cells().Commit(t.Context(), from, nil, []store.Commit{{Send: []store.Parcel{p}}})
			if err != nil || results[0].Status != store.OK {
				t.Fatal(results, err)
			}
			servicetest.Idle(time.Minute)
			if there := f.pendingIn(audit); there != n+1 {
				t.Fatalf("%d tasks are there after parcel %d", there, n+1)
			}
		}
	})
}
