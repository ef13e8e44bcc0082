package workflow

import (
	"testing"

	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/store"
)

// away is a workflow of topic t that has begun a child in mail, and the parcel that takes it there.
func away(t *testing.T) (w *Workflow, begin store.Parcel) {
	t.Helper()
	step := func(name string) graph.Step {
		return graph.Step{Name: name, Task: &graph.Template{Task: store.Task{Payload: []byte(name)}}}
	}
	child := graph.Child{Topic: "mail", Definition: graph.Definition{Name: "inner", Steps: []graph.Step{step("x"), step("y")}}}
	d := &graph.Definition{Steps: []graph.Step{{Name: "a", Child: &child}}}
	w, out := Submit("w", 7, d, Env{Now: 1000, Topic: "t"})
	w.Run = &Run{Schedule: "nightly", Tells: true}
	c, err := Commit(nil, w, &out, Context{Topic: &store.Topic{Name: "t"}, Now: 1000})
	if err != nil || len(c.Send) != 1 || c.Send[0].Topic != "mail" {
		t.Fatalf("it sends %+v, %v", c.Send, err)
	}
	return w, c.Send[0]
}

// arrived is the child of a parcel as it is stored.
func arrived(t *testing.T, p *store.Parcel) *Workflow {
	t.Helper()
	c, err := Arrived(p, 2000)
	if err != nil {
		t.Fatal(err)
	}
	if c.Puts[0].Wake != 2000 || c.Puts[0].If != 0 || len(c.Send) != 1 {
		t.Errorf("it is begun by %+v", c)
	}
	b := newBench(t)
	for _, put := range c.Puts {
		put.Version = 1
		b.cells[put.ID] = put.Cell
	}
	_, child := b.open(b.cells[CellID(p.To.Key())])
	return child
}

// TestAChildGoesToAnotherTopicAndBack is what its parent said of it, and its end finds the parent.
func TestAChildGoesToAnotherTopicAndBack(t *testing.T) {
	w, begin := away(t)
	child := arrived(t, &begin)
	if child.Depth != 2 || child.Def.Name != "inner" || len(child.Units) != 2 || *child.Parent != (Parent{ID: "w", Topic: "t", Task: tasks{w}.of(0).ID}) ||
		child.Run == nil || child.Run.Schedule != "nightly" || child.Run.Tells || child.Created != 2000 {
		t.Errorf("the child is %+v", child)
	}
	child, _, _ = Apply(child, nil, Env{Now: 2000, Topic: "mail"})
	ends := []Event{Ended{Task: tasks{child}.of(0).ID, Outcome: UnitDone}, Ended{Task: tasks{child}.of(1).ID, Outcome: UnitDone, Result: []byte("1")}}
	child, out, _ := Apply(child, ends, Env{Now: 3000, Topic: "mail"})
	c, err := Commit(nil, child, &out, Context{Topic: &store.Topic{Name: "mail"}, Now: 3000})
	if err != nil || len(c.Send) != 1 || c.Send[0].Topic != "t" || c.Send[0].To != CellID("w") {
		t.Fatalf("at its end it sends %+v, %v", c.Send, err)
	}
	w, _, _ = Apply(w, []Event{Told(&c.Send[0])}, Env{Now: 4000, Topic: "t"})
	if w.Phase != Done || string(w.result().Bytes) != "1" || w.Units[0].Ended != 3000 {
		t.Errorf("its parent is %s with %+v", w.Phase, w.Units[0])
	}
}

// TestOrdersComeInAnyOrder has what is asked of a child in another topic come twice, and past what was
// asked later.
func TestOrdersComeInAnyOrder(t *testing.T) {
	w, begin := away(t)
	child := arrived(t, &begin)
	var orders []store.Parcel
	for _, e := range []Event{Pause{}, Resume{}, Pause{}, Cancel{}} {
		var out Effects
		w, out, _ = Apply(w, []Event{e}, Env{Now: 2000, Topic: "t"})
		for i := range out.Orders {
			p, err := out.Orders[i].parcel("w")
			if err != nil || p.Topic != "mail" || AsksToEnd(&p) != (e == Event(Cancel{})) {
				t.Fatalf("%T sends %+v, %v", e, p, err)
			}
			orders = append(orders, Delivered(&p))
		}
	}
	for _, c := range []struct {
		order int
		want  State
	}{{1, Running}, {0, Running}, {2, Paused}, {1, Paused}, {2, Paused}, {3, Cancelling}, {2, Cancelling}} {
		p := orders[c.order]
		p.Number = child.Taken + 1
		child, _ = Take(child, []store.Parcel{p}, nil, Env{Now: 3000, Topic: "mail"})
		if child.State() != c.want {
			t.Errorf("after order %d it is %s, want %s", c.order, child.State(), c.want)
		}
	}
}
