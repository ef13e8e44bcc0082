package workflow

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/store"
)

// TestAgreesWithTheReference has anything happen to random graphs, in any order. The states are
// those of a reference that recomputes all of them, and an open workflow has a cause to go on.
func TestAgreesWithTheReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := &graph.Definition{
			Steps: drawSteps(t, "s", 7), Failure: graph.Failure(rapid.IntRange(0, int(graph.CarryOn)).Draw(t, "failure")), Undo: rapid.Bool().Draw(t, "undo"),
		}
		if err := d.Check(); err != nil {
			t.Fatal(err)
		}
		g := &game{T: t, now: 1_000_000, ref: &reference{def: d}, tries: make(map[string]refEvent), begun: make(map[refTry]int)}
		w, out := Submit("w", 7, d, Env{Now: g.now, Topic: "t"})
		g.took(w, &out)
		for range rapid.IntRange(1, 25).Draw(t, "events") {
			g.now++
			g.play()
		}
	})
}

// game plays one workflow.
type game struct {
	*rapid.T
	now   store.Millis
	w     *Workflow
	ref   *reference
	tasks []string            // ids of all tasks that were made
	tries map[string]refEvent // what each of them was
	begun map[refTry]int      // how many of them were the same try
}

func drawSteps(t *rapid.T, prefix string, most int) (steps []graph.Step) {
	for i := range rapid.IntRange(1, most).Draw(t, "steps") {
		s := graph.Step{Name: fmt.Sprintf("%s%d", prefix, i), IgnoreFailure: rapid.IntRange(0, 3).Draw(t, "ignore") == 0}
		for j := range i {
			if rapid.IntRange(0, 2).Draw(t, "after") == 0 {
				s.After = append(s.After, graph.After{
					Step: steps[j].Name, On: graph.On(max(0, rapid.IntRange(-4, int(graph.OnEnded)).Draw(t, "on"))), Grown: rapid.IntRange(0, 3).Draw(t, "grown") == 0,
				})
			}
		}
		if len(s.After) > 1 && rapid.Bool().Draw(t, "any") {
			s.Need = rapid.IntRange(1, len(s.After)).Draw(t, "need")
			s.CancelRest = rapid.Bool().Draw(t, "cancel rest")
		}
		switch kind := rapid.IntRange(0, 9).Draw(t, "kind"); {
		case kind == 0 && most > 3: // of the definition: each waits for a signal of its own
			s.Wait = &graph.Wait{Signal: s.Name}
		case kind <= 2:
			n := rapid.IntRange(0, 3).Draw(t, "copies")
			s.Copies, s.AtATime = &n, rapid.IntRange(0, 2).Draw(t, "at a time")
			fallthrough
		default:
			s.Task = &graph.Template{Topic: drawTopic(t)}
			if rapid.Bool().Draw(t, "undo") {
				s.Undo = &graph.Template{Topic: drawTopic(t)}
			}
		}
		steps = append(steps, s)
	}
	return steps
}

func drawTopic(t *rapid.T) string {
	return []string{"", "", "mail"}[rapid.IntRange(0, 2).Draw(t, "topic")]
}

// play has one thing happen.
func (g *game) play() {
	var events []Event
	var names []refEvent
	add := func(e Event, r refEvent) { events, names = append(events, e), append(names, r) }
	step := func() string {
		n := rapid.SampledFrom(g.w.of().steps).Draw(g.T, "step")
		return n.name
	}
	switch what := rapid.IntRange(0, 19).Draw(g.T, "what"); {
	case what < 12 && len(g.tasks) > 0:
		id := g.someTask()
		add(g.end(id))
	case what == 12:
		name := graph.StepOf(step())
		add(Signal{Name: name}, refEvent{what: "signal", refTry: refTry{unit: name}})
	case what == 13:
		add(Cancel{}, refEvent{what: "cancel"})
	case what == 14:
		add(Pause{}, refEvent{what: "pause"})
	case what == 15 || what == 16:
		add(Resume{}, refEvent{what: "resume"})
	case what == 17:
		add(Retry{}, refEvent{what: "retry"})
	case what == 18:
		name := step()
		add(Retry{From: name}, refEvent{what: "from", refTry: refTry{unit: name}})
	case what == 19:
		name := step()
		add(Skip{Step: name}, refEvent{what: "skip", refTry: refTry{unit: name}})
	}
	w, out, err := Apply(g.w, events, Env{Now: g.now, Topic: "t"})
	if err != nil {
		if w != g.w || len(out.Make) > 0 {
			g.Fatalf("%s is refused, and something is done", names)
		}
		g.ref.history = append(g.ref.history, names...) // which refuses it, too
		g.compare()
		return
	}
	g.ref.history = append(g.ref.history, names...)
	g.took(w, &out)
}

// someTask is one of those that are open, mostly.
func (g *game) someTask() string {
	open := slices.DeleteFunc(slices.Clone(g.tasks), func(id string) bool {
		p := transition{w: g.w}
		_, ok := p.unitOf(id)
		return !ok
	})
	if len(open) == 0 || rapid.IntRange(0, 9).Draw(g.T, "stale") == 0 {
		open = g.tasks
	}
	return rapid.SampledFrom(open).Draw(g.T, "task")
}

func (g *game) end(id string) (Event, refEvent) {
	r := g.tries[id]
	e := Ended{Task: id, At: g.now}
	switch rapid.IntRange(0, 5).Draw(g.T, "end") {
	case 0:
		r.what, e.Outcome, e.Why = "failed", UnitFailed, WhyDead
	case 1:
		r.what, e.Outcome, e.Why = "deleted", UnitFailed, WhyDeleted
	case 2:
		r.what, e.Outcome = "done", UnitDone
		prefix := rapid.SampledFrom([]string{"s", "t", "u", "v"}).Draw(g.T, "prefix")
		e.Growth = &graph.Growth{Steps: drawSteps(g.T, prefix, 3), Suspend: rapid.Bool().Draw(g.T, "suspend"), Skip: []string{fmt.Sprintf("s%d", rapid.IntRange(0, 6).Draw(g.T, "leave out"))}}
		if strings.Count(r.unit, ".") > 1 {
			e.Growth.Steps, e.Growth.Suspend = nil, false
		}
		r.grow = e.Growth
	default:
		r.what, e.Outcome = "done", UnitDone
	}
	return e, r
}

func (g *game) took(w *Workflow, out *Effects) {
	g.w = w
	for _, m := range out.Make {
		u := &w.Units[m.Unit]
		if _, there := g.tries[m.ID]; there {
			g.Fatalf("task %s is made twice", m.ID)
		}
		g.tasks = append(g.tasks, m.ID)
		try := refTry{unit: w.of().unitNamed(m.Unit), try: u.Try, undo: m.Undo}
		g.begun[try]++
		g.tries[m.ID] = refEvent{refTry: try, time: g.begun[try]}
	}
	if err := lives(w, out); err != nil {
		g.Fatal(err)
	}
	g.compare()
}

func (g *game) compare() {
	g.ref.replay()
	lines := []string{g.w.State().String()}
	for unit := range g.w.Units {
		u := &g.w.Units[unit]
		lines = append(lines, fmt.Sprintf("%s %s %d %t %t", g.w.of().unitNamed(unit), u.State, u.Try, u.Asked && u.State == UnitMade, u.Suspended))
	}
	slices.Sort(lines[1:])
	if got, want := strings.Join(lines, "\n"), g.ref.String(); got != want {
		g.Fatalf("after %v it is\n%s\nby the reference\n%s", g.ref.history, got, want)
	}
}
