package actors_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/actors/workflow/access"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// flowNode is what access needs of a node.
type flowNode struct{ *actors.Node }

func (n flowNode) NowAt(s store.Shard) store.Millis { return n.Clocks().NowAt(s) }

func (n flowNode) Committed(ctx context.Context, s store.Shard, c *store.Commit, stamp store.Stamp) {
	ref, err := n.Topics().Open(ctx, s.Topic, false)
	if err != nil {
		return
	}
	ref.Committed(s.N, c, stamp)
}

// flows are the workflows of the topic mail, as any node sees them.
type flows struct {
	*testing.T
	node  *actors.Node
	topic *store.Topic
	access.Access
}

func flowsOf(t *testing.T, n *actors.Node) *flows {
	t.Helper()
	ref, err := n.Topics().Open(t.Context(), "mail", true)
	if err != nil {
		t.Fatal(err)
	}
	return &flows{t, n, ref.Config(), access.Access{Store: n.Cells(), Node: flowNode{n}}}
}

func (f *flows) submit(id string, d *graph.Definition) {
	f.Helper()
	if e := d.Check(); e != nil {
		f.Fatal(e)
	}
	if _, err := f.Submit(f.Context(), f.topic, id, d); err != nil {
		f.Fatal(err)
	}
}

func (f *flows) get(id string) (workflow.Status, map[string]workflow.StepStatus) {
	f.Helper()
	s, steps, err := f.Get(f.Context(), f.topic, id, true, true)
	if err != nil {
		f.Fatal(err)
	}
	byName := make(map[string]workflow.StepStatus)
	for _, step := range steps {
		byName[step.Name] = step
	}
	return s, byName
}

// taskStep is a step of one task that waits for others.
func taskStep(name string, after ...string) graph.Step {
	s := graph.Step{Name: name, Task: &graph.Template{Task: store.Task{Payload: []byte(name), MaxRetries: -1}}}
	for _, a := range after {
		s.After = append(s.After, graph.After{Step: a})
	}
	return s
}

// ack has a worker be done with a delivery.
func ack(w *servicetest.Stream, d subscription.Delivery, result string) {
	w.Sub.Settle(1, []subscription.Settlement{{Kind: subscription.SettleAck, ID: d.Task.ID, Token: d.Token, Result: []byte(result)}})
}

func TestAWorkflow(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 100)
		f := flowsOf(t, s.Node())
		f.submit("w", &graph.Definition{
			Retention: time.Minute, Steps: []graph.Step{taskStep("a"), taskStep("b", "a"), taskStep("c", "a"), taskStep("d", "b", "c")},
		})
		var order []string
		for range 3 {
			servicetest.Idle(5 * time.Millisecond)
			for _, d := range w.Take() {
				of := d.Task.StepOf
				if of == nil || of.Workflow != "w" || of.Try != 1 || of.Starts != 1 {
					t.Fatalf("the task is of %+v", of)
				}
				order = append(order, of.Name)
				if of.Name == "d" && (len(of.Inputs) != 2 || string(of.Inputs[0].Result) != "b!" || string(of.Inputs[1].Result) != "c!") {
					t.Errorf("it is told %+v", of.Inputs)
				}
				ack(w, d, of.Name+"!")
			}
		}
		servicetest.Idle(5 * time.Millisecond)
		status, steps := f.get("w")
		if slices.Sort(order[1:3]); !slices.Equal(order, []string{"a", "b", "c", "d"}) || status.State != workflow.Done || string(status.Result) != "d!" {
			t.Errorf("%v made it %+v of %+v", order, status, steps)
		}
		servicetest.Idle(2 * time.Minute)
		if stats := f.stats(); stats.Cells != 0 || stats.Parcels != 0 {
			t.Errorf("a minute after its end there is %+v", stats)
		}
	})
}

// stats are those of all shards together.
func (f *flows) stats() (all store.Stats) {
	f.Helper()
	stats, err := f.node.CountsOf(f.Context(), place.Shards(f.topic))
	if err != nil {
		f.Fatal(err)
	}
	for i := range stats {
		all.Cells += stats[i].Cells
		all.Parcels += stats[i].Parcels
		all.Pending += stats[i].Pending
	}
	return all
}

// workOff answers each delivery: with an ack and what the step is to return, or as a failure.
func workOff(t *testing.T, w *servicetest.Stream, rounds int, answer func(*store.StepOf) (result string, ok bool)) (names []string) {
	t.Helper()
	for range rounds {
		servicetest.Idle(5 * time.Millisecond)
		for _, d := range w.Take() {
			names = append(names, d.Task.StepOf.Workflow+":"+d.Task.StepOf.Name)
			if result, ok := answer(d.Task.StepOf); ok {
				ack(w, d, result)
			} else {
				w.Sub.Settle(1, []subscription.Settlement{{Kind: subscription.SettleNack, ID: d.Task.ID, Token: d.Token, Permanent: true, Error: result}})
			}
		}
	}
	return names
}

func parentOf(child graph.Definition, after ...graph.Step) *graph.Definition {
	return &graph.Definition{Retention: time.Minute, Steps: append([]graph.Step{{Name: "sub", Child: &graph.Child{Definition: child}}}, after...)}
}

func TestAChildIsAStep(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 100)
		f := flowsOf(t, s.Node())
		inner := *parentOf(graph.Definition{Retention: time.Minute, Steps: []graph.Step{taskStep("x")}}, taskStep("y", "sub"))
		f.submit("w", parentOf(inner, taskStep("z", "sub")))
		names := workOff(t, w, 8, func(of *store.StepOf) (string, bool) { return of.Name + "!", true })
		if !slices.Equal(names, []string{"w/sub/sub:x", "w/sub:y", "w:z"}) {
			t.Errorf("%v were made", names)
		}
		if status, steps := f.get("w"); status.State != workflow.Done || string(steps["sub"].Result) != "y!" {
			t.Errorf("it is %+v of %+v", status, steps)
		}
		servicetest.Idle(2 * time.Minute)
		if stats := f.stats(); stats.Cells != 0 || stats.Parcels != 0 {
			t.Errorf("a minute after its end there is %+v", stats)
		}
	})
}

func TestAChildThatFailsIsAFailedStep(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 100)
		f := flowsOf(t, s.Node())
		f.submit("w", parentOf(graph.Definition{Steps: []graph.Step{taskStep("x")}}, taskStep("z", "sub")))
		workOff(t, w, 3, func(*store.StepOf) (string, bool) { return "boom", false })
		if status, steps := f.get("w"); status.State != workflow.Failed || status.Error != "STEP_FAILED: x: boom" || steps["z"].State != workflow.UnitSkipped {
			t.Errorf("it is %+v of %+v", status, steps)
		}
		if _, err := f.Change(t.Context(), f.topic, "w/sub", workflow.Retry{}); err == nil {
			t.Error("a child is retried by itself")
		}
		if _, err := f.Change(t.Context(), f.topic, "w", workflow.Retry{}); err != nil {
			t.Fatal(err)
		}
		workOff(t, w, 5, func(*store.StepOf) (string, bool) { return "ok", true })
		if status, _ := f.get("w"); status.State != workflow.Done {
			t.Errorf("after the retry it is %+v", status)
		}
	})
}

func TestACancelThatIsAnsweredLetsNothingBegin(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		f := flowsOf(t, s.Node())
		f.submit("w", parentOf(graph.Definition{Steps: []graph.Step{taskStep("x"), taskStep("y", "x")}}, taskStep("a")))
		servicetest.Idle(5 * time.Millisecond)
		if stats := f.stats(); stats.Pending != 2 {
			t.Fatalf("there is %+v", stats)
		}
		if _, err := f.Change(t.Context(), f.topic, "w", workflow.Cancel{}); err != nil {
			t.Fatal(err)
		}
		if stats := f.stats(); stats.Pending != 0 {
			t.Errorf("after the cancel there is %+v", stats)
		}
		servicetest.Idle(10 * time.Millisecond)
		if status, _ := f.get("w"); status.State != workflow.Cancelled {
			t.Errorf("it is %+v", status)
		}
	})
}

func TestASignalEndsAWait(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 100)
		f := flowsOf(t, s.Node())
		wait := graph.Step{Name: "ok", Wait: &graph.Wait{Signal: "ok", Timeout: 365 * 24 * time.Hour}}
		f.submit("w", &graph.Definition{Steps: []graph.Step{wait, taskStep("a", "ok")}})
		servicetest.Idle(time.Hour)
		if err := f.Signal(t.Context(), f.topic, "w", workflow.Signal{Name: "ok", Payload: []byte("yes")}); err != nil {
			t.Fatal(err)
		}
		names := workOff(t, w, 2, func(of *store.StepOf) (string, bool) { return string(of.Inputs[0].Result), true })
		if status, _ := f.get("w"); len(names) != 1 || status.State != workflow.Done || string(status.Result) != "yes" {
			t.Errorf("%v made it %+v", names, status)
		}
	})
}

// TestAWorkflowThatIsStuckIsFound has a workflow believe in a task that is gone, and another one
// that has forgotten to go on.
func TestAWorkflowThatIsStuckIsFound(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		f := flowsOf(t, s.Node())
		f.submit("w", &graph.Definition{Steps: []graph.Step{taskStep("a")}})
		servicetest.Idle(time.Second)
		_, steps := f.get("w")
		shard := workflow.Shards(f.topic, "w")[0]
		cells, err := f.Store.Cells(t.Context(), shard, []store.CellID{workflow.CellID("w")})
		if err != nil {
			t.Fatal(err)
		}
		lost := cells[0]
		commit := func(c store.Commit) {
			if _, results, err := f.Store.Commit(t.Context(), shard, nil, []store.Commit{c}); err != nil || results[0].Status != store.OK {
				t.Fatal(results, err)
			}
		}
		// The task goes while the cell that it tells is not there.
		commit(store.Commit{Puts: []store.Put{{Cell: store.Cell{ID: lost.ID}, If: lost.Version}}, Removes: []store.Remove{{ID: steps["a"].Task}}})
		servicetest.Idle(time.Minute)
		commit(store.Commit{Puts: []store.Put{{Cell: lost}}})
		servicetest.Idle(2 * time.Hour)
		if status, steps := f.get("w"); status.State != workflow.Failed || steps["a"].Why != workflow.WhyDeleted {
			t.Errorf("it is %+v of %+v", status, steps)
		}
	})
}

// TestAnAckGrowsItsWorkflow has a step say how many pages there are, and another one wait for all
// of them.
func TestAnAckGrowsItsWorkflow(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 100)
		f := flowsOf(t, s.Node())
		join := taskStep("join")
		join.After = []graph.After{{Step: "split", Grown: true}}
		f.submit("w", &graph.Definition{Steps: []graph.Step{taskStep("split"), join}})
		servicetest.Idle(5 * time.Millisecond)
		g := &graph.Growth{}
		for i := range 20 {
			g.Steps = append(g.Steps, taskStep(fmt.Sprintf("page%d", i)))
		}
		say, err := g.Encode()
		if err != nil {
			t.Fatal(err)
		}
		d := w.TakeOne()
		w.Sub.Settle(1, []subscription.Settlement{{Kind: subscription.SettleAck, ID: d.Task.ID, Token: d.Token, Say: say}})
		names := workOff(t, w, 4, func(of *store.StepOf) (string, bool) {
			if of.Name == "join" {
				return fmt.Sprint(len(of.Inputs), " ", string(of.Inputs[20].Result)), true
			}
			return of.Name, true
		})
		status, _ := f.get("w")
		if len(names) != 21 || status.State != workflow.Done || string(status.Result) != "21 split.page19" {
			t.Errorf("%v made it %+v", names, status)
		}
	})
}
