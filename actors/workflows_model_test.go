package actors_test

import (
	"flag"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/actors/workflow/refusal"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

var modelWorkflows = flag.Int("workflows", 400, "workflows that are compared with their models")

// drawn is a number below n that follows from what it is for.
func drawn(n int, of ...any) int {
	h := fnv.New64a()
	fmt.Fprint(h, of...)
	return int(h.Sum64() % uint64(n))
}

// fails says whether the first task of a step fails for good: one that does is done when it is retried.
// Copies do not: which of them are made yet depends on the order of ends. What tells children of one
// name apart is left out: a child that fails is another one when it is retried.
func fails(of *store.StepOf) bool {
	return !of.Undo && of.Copy == 0 && drawn(6, nameOf(of), of.Copy) == 0
}

func nameOf(of *store.StepOf) string {
	id, _, _ := strings.Cut(of.Workflow, ":")
	return id + "/" + of.Name
}

// otherTopic has the tasks of some steps, and some children.
const otherTopic = "away"

// drawFlow is a graph whose end follows from which of its tasks fail, in whatever order they end.
func drawFlow(id string) *graph.Definition { return drawGraph(id, 3+drawn(6, id, "steps"), true) }

func drawGraph(id string, steps int, whole bool) *graph.Definition {
	d := &graph.Definition{Failure: graph.CarryOn, Undo: drawn(3, id, "undo") == 0, Retention: 24 * time.Hour}
	if !whole {
		d.Retention = time.Minute
	}
	for i := range steps {
		s := taskStep(fmt.Sprintf("s%d", i))
		for j := range i {
			if drawn(3, id, i, j) == 0 {
				s.After = append(s.After, graph.After{Step: fmt.Sprintf("s%d", j), On: []graph.On{0, 0, 0, graph.OnFailed, graph.OnEnded}[drawn(5, id, i, j, "on")]})
			}
		}
		if len(s.After) > 1 && drawn(4, id, i, "need") == 0 {
			s.Need = 1
		}
		kind := drawn(7, id, i, "kind")
		switch {
		case kind == 0:
			s.Task, s.Wait = nil, &graph.Wait{Delay: time.Duration(1+drawn(5000, id, i)) * time.Millisecond}
		case !whole: // a child has nothing else
		case kind == 1:
			s.Task, s.Wait = nil, &graph.Wait{Signal: s.Name}
		case kind == 2:
			n := drawn(5, id, i, "copies")
			s.Copies, s.AtATime = &n, drawn(3, id, i, "at a time")
		case kind == 3:
			s.IgnoreFailure = true
		case kind == 4:
			s.Undo = s.Task
		case kind == 5:
			child := fmt.Sprintf("%s/%s", id, s.Name)
			s.Task, s.Child = nil, &graph.Child{Topic: []string{"", otherTopic, otherTopic}[drawn(3, child)], Definition: *drawGraph(child, 1+drawn(3, child, "steps"), false)}
		}
		if s.Task != nil && drawn(3, id, i, "topic") == 0 {
			there := *s.Task
			there.Topic = otherTopic
			s.Task = &there
		}
		d.Steps = append(d.Steps, s)
	}
	return d
}

// modelFlow plays a workflow by the pure rules, to its end.
func modelFlow(id string, d *graph.Definition) *workflow.Workflow {
	now := store.Millis(1)
	w, out := workflow.Submit(id, 7, d, workflow.Env{Now: now})
	for w.Phase.Open() {
		now += 10_000
		var events []workflow.Event
		for _, s := range w.StepStatuses() {
			switch {
			case s.State != workflow.UnitMade && s.State != workflow.UnitUndoing:
			case s.Signal != "":
				events = append(events, workflow.Signal{Name: s.Signal})
			case s.Kind == graph.KindTask:
				failed := s.State == workflow.UnitMade && fails(&store.StepOf{Workflow: id, Name: s.Name, Copy: s.Copy})
				events = append(events, modelEnd(s.Task, failed))
			}
		}
		for _, c := range out.Begin {
			child, _, _ := strings.Cut(c.ID, ":")
			step := slices.IndexFunc(d.Steps, func(s graph.Step) bool { return id+"/"+s.Name == child })
			failed := modelFlow(child, &d.Steps[step].Child.Definition).Phase != workflow.Done
			events = append(events, modelEnd(c.Task, failed))
		}
		w, out, _ = workflow.Apply(w, events, workflow.Env{Now: now})
	}
	return w
}

func modelEnd(task string, failed bool) workflow.Ended {
	if failed {
		return workflow.Ended{Task: task, Outcome: workflow.UnitFailed}
	}
	return workflow.Ended{Task: task, Outcome: workflow.UnitDone}
}

func unitStates(steps []workflow.StepStatus) map[string]workflow.UnitState {
	states := make(map[string]workflow.UnitState)
	for _, s := range steps {
		states[fmt.Sprintf("%s#%d", s.Name, s.Copy)] = s.State
	}
	return states
}

// striver is a worker that does the tasks of steps, some seconds each.
type striver struct {
	diligent
	*testing.T
	tries map[string]string // step, copy and try -> id of its task
	first map[string]string // step -> id of the first task of it
}

func (w *striver) Deliver(ds []subscription.Delivery) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range ds {
		of := d.Task.StepOf
		try := fmt.Sprintf("%s/%s#%d try %d undo %t", of.Workflow, of.Name, of.Copy, of.Try, of.Undo)
		if id, there := w.tries[try]; there && id != d.Task.ID {
			w.Errorf("%s has two tasks", try)
		}
		w.tries[try] = d.Task.ID
		if w.first[nameOf(of)] == "" {
			w.first[nameOf(of)] = d.Task.ID
		}
		failed := w.first[nameOf(of)] == d.Task.ID && fails(of)
		took := time.Duration(drawn(3000, try)) * time.Millisecond
		w.runs[d.Task.ID+string(d.Token)] = time.AfterFunc(took, func() {
			kind := subscription.Settlement{Kind: subscription.SettleAck, ID: d.Task.ID, Token: d.Token, Result: []byte(try)}
			if failed {
				kind = subscription.Settlement{Kind: subscription.SettleNack, ID: d.Task.ID, Token: d.Token, Permanent: true, Error: try}
			}
			w.sub.Settle(1, []subscription.Settlement{kind})
		})
	}
	return true
}

// TestWorkflowsGoAsTheirModels has the owners of all shards change each second. Each workflow ends
// as the pure rules say, each try of a step is one task, and a retry makes what failed anew.
func TestWorkflowsGoAsTheirModels(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, fleet *servicetest.Fleet) {
		a := fleet.Nodes["a"].Sys
		createBoth(t, a)
		f := flowsOf(t, a.Node())
		w, other := startStriver(t, a, "mail"), startStriver(t, a, otherTopic)
		flips := flipOwners(fleet)
		ids := f.submitMany(dose(*modelWorkflows))
		f.signalAll(ids)
		time.Sleep(2 * time.Minute)
		f.compareAll(ids)
		for range 8 { // what was skipped before may fail in its turn
			if f.retryFailed(ids) == 0 {
				break
			}
			f.signalAll(ids)
			time.Sleep(time.Minute)
		}
		for _, id := range ids {
			if s, steps := f.get(id); s.State != workflow.Done {
				t.Errorf("after its retries %s is %+v of %+v", id, s, steps)
			}
		}
		close(flips)
		w.stop()
		other.stop()
		if s, n := f.stats(), f.pendingIn(f.openOther(otherTopic)); s.Parcels > 0 || s.Pending > 0 || n > 0 {
			t.Errorf("in the end there is %+v, and %d tasks are pending elsewhere", s, n)
		}
		t.Logf("%d workflows, %d tasks, and %d in another topic", len(ids), len(w.tries), len(other.tries))
	})
}

// createBoth creates the topic of the workflows and the other one.
func createBoth(t *testing.T, s *service.Service) {
	t.Helper()
	for _, name := range []string{"mail", otherTopic} {
		topic := longVisible(s)
		topic.Name = name
		if _, err := s.Node().Topics().Create(t.Context(), topic); err != nil {
			t.Fatal(err)
		}
	}
}

func startStriver(t *testing.T, s *service.Service, topic string) *striver {
	t.Helper()
	w := &striver{T: t, diligent: diligent{runs: map[string]*time.Timer{}}, tries: map[string]string{}, first: map[string]string{}}
	var err error
	if w.sub, err = s.Delivery.Subscribe(t.Context(), subscription.Options{Topic: topic, Worker: "w"}, w); err != nil {
		t.Fatal(err)
	}
	if err := w.sub.Grant(10_000); err != nil {
		t.Fatal(err)
	}
	return w
}

// flipOwners has owners change each second until the channel is closed.
func flipOwners(fleet *servicetest.Fleet) chan struct{} {
	stop := make(chan struct{})
	go func() {
		for second := 0; ; second++ {
			select {
			case <-stop:
				return
			case <-time.After(time.Second):
			}
			fleet.Nodes["a"].SetDraining(second%2 == 0)
			fleet.Nodes["b"].SetDraining(second%2 == 1)
		}
	}()
	return stop
}

func (f *flows) submitMany(n int) (ids []string) {
	for i := range n {
		id := fmt.Sprintf("w%d", i)
		f.submit(id, drawFlow(id))
		ids = append(ids, id)
		if i%20 == 0 {
			time.Sleep(113 * time.Millisecond)
		}
	}
	return ids
}

// signalAll sends each wait its signal, some of them before it waits.
func (f *flows) signalAll(ids []string) {
	f.Helper()
	var group sync.WaitGroup
	for _, id := range ids {
		group.Go(func() {
			for _, s := range drawFlow(id).Steps {
				if s.Wait == nil || s.Wait.Signal == "" {
					continue
				}
				time.Sleep(time.Duration(drawn(4000, id, s.Name, "pause")) * time.Millisecond)
				signal := workflow.Signal{Name: s.Name, Payload: []byte("x")}
				if err := f.Signal(f.Context(), f.topic, id, signal); err != nil && !slices.Contains([]string{refusal.WorkflowFinished}, reasonOf(err)) {
					f.Errorf("signal to %s: %v", id, err)
				}
			}
		})
	}
	group.Wait()
}

// retryFailed retries the workflows that failed, and returns how many.
func (f *flows) retryFailed(ids []string) (n int) {
	f.Helper()
	for _, id := range ids {
		if s, _ := f.get(id); s.State != workflow.Failed {
			continue
		}
		n++
		if _, err := f.Change(f.Context(), f.topic, id, workflow.Retry{}); err != nil {
			f.Errorf("retry of %s: %v", id, err)
		}
	}
	return n
}

func reasonOf(err error) string {
	if e, ok := err.(*refusal.Error); ok {
		return e.Reason
	}
	return ""
}

func (f *flows) compareAll(ids []string) {
	f.Helper()
	failed := 0
	for _, id := range ids {
		s, steps, err := f.Get(f.Context(), f.topic, id, true, false)
		if err != nil {
			f.Fatal(err)
		}
		want, got := unitStates(modelFlow(id, drawFlow(id)).StepStatuses()), unitStates(steps)
		for unit, state := range want {
			if got[unit] != state {
				f.Errorf("%s is %s: %s is %s, by its model %s", id, s.State, unit, got[unit], state)
			}
		}
		if s.State == workflow.Failed {
			failed++
		}
	}
	f.Logf("%d of %d failed", failed, len(ids))
}

// TestWorkflowsGoOnInSealedShards gives their topic other shards while workflows go on: they end
// where they are.
func TestWorkflowsGoOnInSealedShards(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, fleet *servicetest.Fleet) {
		a := fleet.Nodes["a"]
		createBoth(t, a.Sys)
		f := flowsOf(t, a.Sys.Node())
		w, other := startStriver(t, a.Sys, "mail"), startStriver(t, a.Sys, otherTopic)
		ids := f.submitMany(100)
		for i := range 20 {
			id := fmt.Sprintf("parent%d", i)
			d := parentOf(graph.Definition{Steps: []graph.Step{taskStep("x"), taskStep("y", "x")}}, taskStep("z", "sub"))
			d.Retention = time.Hour
			f.submit(id, d)
			f.submit("late"+id, &graph.Definition{Failure: graph.CarryOn, Steps: []graph.Step{
				taskStep("first"), {Name: "sub", After: []graph.After{{Step: "first", On: graph.OnEnded}}, Child: &graph.Child{Definition: graph.Definition{Steps: []graph.Step{taskStep("x")}}}},
			}})
			ids = append(ids, id, "late"+id)
		}
		fleet.Reshard(a, otherTopic, 5)
		topic := fleet.Reshard(a, "mail", 5)
		f.topic = &topic
		f.signalAll(ids[:100])
		time.Sleep(2 * time.Minute)
		f.compareAll(ids[:100])
		for _, id := range ids {
			if s, steps := f.get(id); s.State.Open() {
				t.Errorf("%s is %+v of %+v", id, s, steps)
			}
		}
		w.stop()
		other.stop()
		time.Sleep(10 * time.Minute)
		away := f.openOther(otherTopic)
		for _, s := range place.Shards(away) { // with dead letters, a shard of before stays; with cells it would for ever
			stats, err := f.node.CountsOf(t.Context(), []store.Shard{s})
			if err != nil || s.N < away.First && stats[0].Cells+stats[0].Parcels > 0 {
				t.Errorf("shard %d of before has %+v, %v", s.N, stats, err)
			}
		}
	})
}
