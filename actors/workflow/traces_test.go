package workflow

import (
	"testing"

	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/store"
)

// traced are steps of tasks, by their names; each waits for the one before it, of which on has to be met.
func traced(on graph.On, names ...string) (steps []graph.Step) {
	for i, name := range names {
		s := graph.Step{Name: name, Task: &graph.Template{}}
		if i > 0 {
			s.After = []graph.After{{Step: names[i-1], On: on}}
		}
		steps = append(steps, s)
	}
	return steps
}

// endOf is the end of a task, with what was said of its trace, as its workflow reads it.
func endOf(t *testing.T, w *Workflow, unit int, kind store.ChangeKind, span byte) Event {
	t.Helper()
	ended := &store.Ended{ID: tasks{w}.of(unit).ID, Kind: kind}
	if span != 0 {
		ended.Say = say(t, span)
	}
	return Told(&store.Parcel{Number: 1, To: CellID(w.ID), Ended: ended})
}

func say(t *testing.T, span byte) []byte {
	t.Helper()
	say, refused := (&graph.Growth{Trace: spanOf(span)}).Say()
	if refused != nil {
		t.Fatal(refused)
	}
	return say
}

func spanOf(span byte) *store.Trace {
	return &store.Trace{ID: store.TraceID{1}, Span: [8]byte{span}, Flags: 1}
}

// madeIn fails unless one task is made, from the attempt that was in a span; 0: from none.
func madeIn(t *testing.T, out *Effects, span byte) {
	t.Helper()
	if len(out.Make) != 1 {
		t.Fatalf("it makes %+v", out.Make)
	}
	if got := out.Make[0].Trace; (got == nil) != (span == 0) || got != nil && got.Span[0] != span {
		t.Errorf("it is from %+v, want %d", got, span)
	}
}

// What begins by a failure comes from the attempt that failed last.
func TestStepAfterAFailureComesFromTheAttempt(t *testing.T) {
	for _, span := range []byte{0, 7} {
		w, _ := Submit("w", 7, &graph.Definition{Steps: traced(graph.OnFailed, "a", "b")}, Env{Now: 1000, Topic: "t"})
		_, out, _ := Apply(w, []Event{endOf(t, w, 0, store.ChangeDead, span)}, Env{Now: 2000, Topic: "t"})
		madeIn(t, &out, span)
	}
}

// What an end that failed says besides changes nothing: only acks grow.
func TestFailuresGrowNothing(t *testing.T) {
	w, _ := Submit("w", 7, &graph.Definition{Steps: traced(graph.OnFailed, "a", "b")}, Env{Now: 1000, Topic: "t"})
	end := endOf(t, w, 0, store.ChangeDead, 7).(Ended)
	if end.Growth != nil || end.Outcome != UnitFailed {
		t.Errorf("it is %+v", end)
	}
}

// An undo comes from what failed, and the next one from the undo before it.
func TestUndoComesFromWhatFailed(t *testing.T) {
	d := &graph.Definition{Undo: true, Steps: traced(graph.OnDone, "a", "b", "c")}
	d.Steps[0].Undo, d.Steps[1].Undo = &graph.Template{}, &graph.Template{}
	w, _ := Submit("w", 7, d, Env{Now: 1000, Topic: "t"})
	var out Effects
	for unit, kind := range []store.ChangeKind{store.ChangeDone, store.ChangeDone, store.ChangeDead} {
		w, out, _ = Apply(w, []Event{endOf(t, w, unit, kind, byte(unit+1))}, Env{Now: 2000, Topic: "t"})
		madeIn(t, &out, byte(unit+1))
	}
	_, out, _ = Apply(w, []Event{endOf(t, w, 1, store.ChangeDone, 9)}, Env{Now: 3000, Topic: "t"})
	madeIn(t, &out, 9)
}

// Of two that end in one transition, the one that ended last starts the step, whichever is told first.
func TestLastEndStartsAStep(t *testing.T) {
	steps := []graph.Step{
		{Name: "a", Task: &graph.Template{}}, {Name: "b", Task: &graph.Template{}},
		{Name: "c", Task: &graph.Template{}, After: []graph.After{{Step: "a", On: graph.OnEnded}, {Step: "b", On: graph.OnEnded}}},
	}
	for _, lateUnit := range []int{0, 1} {
		w, _ := Submit("w", 7, &graph.Definition{Steps: steps, Failure: graph.CarryOn}, Env{Now: 1000, Topic: "t"})
		late, early := endOf(t, w, lateUnit, store.ChangeDead, 2).(Ended), endOf(t, w, 1-lateUnit, store.ChangeDone, 1).(Ended)
		late.At, early.At = 1500, 1200
		_, out, _ := Apply(w, []Event{late, early}, Env{Now: 2000, Topic: "t"})
		madeIn(t, &out, 2)
	}
}

// The step behind a child comes from the attempt by which the child ended, here and in another topic.
func TestStepAfterAChildComesFromItsLastAttempt(t *testing.T) {
	for _, topic := range []string{"", "mail"} {
		for kind, on := range map[store.ChangeKind]graph.On{store.ChangeDone: graph.OnDone, store.ChangeDead: graph.OnFailed} {
			child := &graph.Child{Topic: topic, Definition: graph.Definition{Steps: traced(graph.OnDone, "x")}}
			d := &graph.Definition{Steps: []graph.Step{{Name: "a", Child: child}, {Name: "b", Task: &graph.Template{}, After: []graph.After{{Step: "a", On: on}}}}}
			w, out := Submit("w", 7, d, Env{Now: 1000, Topic: "t"})
			inner := New("w.a", 8, &child.Definition, 1000)
			inner.Parent = &Parent{ID: "w", Task: out.Begin[0].Task}
			inner, _, _ = Apply(inner, nil, Env{Now: 1000, Topic: "t"})
			inner, out, _ = Apply(inner, []Event{endOf(t, inner, 0, kind, 5)}, Env{Now: 2000, Topic: "t"})
			p, err := inner.tellParent(&out, Context{Topic: &store.Topic{Name: "t"}, Now: 2000})
			if err != nil {
				t.Fatal(err)
			}
			_, out, _ = Apply(w, []Event{Told(&p)}, Env{Now: 3000, Topic: "t"})
			madeIn(t, &out, 5)
		}
	}
}
