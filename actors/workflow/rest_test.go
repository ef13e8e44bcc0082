package workflow

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/ddq-io/ddq/actors/workflow/graph"
)

// TestAgreesAboutRests is TestAgreesWithTheReference for graphs full of steps that cancel the rest of
// what they waited for, and are in the rest of others.
func TestAgreesAboutRests(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := &graph.Definition{Steps: drawRests(t), Failure: graph.Failure(rapid.IntRange(0, int(graph.CarryOn)).Draw(t, "failure"))}
		if err := d.Check(); err != nil {
			t.Fatal(err)
		}
		g := &game{T: t, now: 1_000_000, ref: &reference{def: d}, tries: make(map[string]refEvent), begun: make(map[refTry]int)}
		w, out := Submit("w", 7, d, Env{Now: g.now, Topic: "t"})
		g.took(w, &out)
		for range rapid.IntRange(1, 12).Draw(t, "events") {
			g.now++
			g.play()
		}
	})
}

func drawRests(t *rapid.T) (steps []graph.Step) {
	for i := range rapid.IntRange(3, 8).Draw(t, "steps") {
		s := graph.Step{Name: fmt.Sprintf("s%d", i), IgnoreFailure: rapid.IntRange(0, 3).Draw(t, "ignore") == 0, Task: &graph.Template{}}
		for j := range i {
			if rapid.Bool().Draw(t, "after") {
				s.After = append(s.After, graph.After{Step: steps[j].Name, On: graph.On(rapid.IntRange(0, int(graph.OnEnded)).Draw(t, "on"))})
			}
		}
		if len(s.After) > 1 && rapid.IntRange(0, 3).Draw(t, "any") > 0 {
			s.Need, s.CancelRest = rapid.IntRange(1, len(s.After)).Draw(t, "need"), true
		}
		if rapid.IntRange(0, 4).Draw(t, "kind") == 0 {
			n := rapid.IntRange(0, 2).Draw(t, "copies")
			s.Copies, s.AtATime = &n, rapid.IntRange(0, 1).Draw(t, "at a time")
		}
		steps = append(steps, s)
	}
	return steps
}
