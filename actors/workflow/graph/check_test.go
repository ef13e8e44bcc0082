package graph

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors/workflow/refusal"
	"github.com/ddq-io/ddq/store"
)

func TestCheckRefuses(t *testing.T) {
	task := func(name string, after ...string) Step {
		s := Step{Name: name, Task: &Template{}}
		for _, a := range after {
			s.After = append(s.After, After{Step: a})
		}
		return s
	}
	with := func(s Step, change func(*Step)) Step {
		change(&s)
		return s
	}
	number := func(n int) *int { return &n }
	deep := Definition{Steps: []Step{task("a")}}
	for range MaxDepth {
		deep = Definition{Steps: []Step{{Name: "a", Child: &Child{Definition: deep}}}}
	}
	many := make([]After, MaxAfter+1)
	for name, c := range map[string]struct {
		of            Definition
		reason, field string
	}{
		"nothing":              {Definition{}, refusal.BadGraph, "steps"},
		"a bad name":           {Definition{Steps: []Step{task("a b")}}, refusal.BadGraph, "steps[0].name"},
		"a name twice":         {Definition{Steps: []Step{task("a"), task("a")}}, refusal.BadGraph, "steps[1].name"},
		"an unknown step":      {Definition{Steps: []Step{task("a"), task("b", "a", "c")}}, refusal.BadGraph, "steps[1].after[1]"},
		"a step twice":         {Definition{Steps: []Step{task("a"), task("b", "a", "a")}}, refusal.BadGraph, "steps[1].after[1]"},
		"itself":               {Definition{Steps: []Step{task("a", "a")}}, refusal.BadGraph, "steps[0].after[0]"},
		"a cycle":              {Definition{Steps: []Step{task("z"), task("a", "z", "c"), task("b", "a"), task("c", "b")}}, refusal.BadGraph, "steps[1].after[1]"},
		"too high a need":      {Definition{Steps: []Step{task("a"), with(task("b", "a"), func(s *Step) { s.Need = 2 })}}, refusal.BadGraph, "steps[1].need"},
		"a rest without need":  {Definition{Steps: []Step{task("a"), with(task("b", "a"), func(s *Step) { s.CancelRest = true })}}, refusal.BadGraph, "steps[1].cancel_rest"},
		"two kinds":            {Definition{Steps: []Step{with(task("a"), func(s *Step) { s.Wait = &Wait{Delay: time.Second} })}}, refusal.BadGraph, "steps[0]"},
		"no kind":              {Definition{Steps: []Step{{Name: "a"}}}, refusal.BadGraph, "steps[0]"},
		"copies of a child":    {Definition{Steps: []Step{{Name: "a", Copies: number(2), Child: &Child{Definition: Definition{Steps: []Step{task("a")}}}}}}, refusal.BadGraph, "steps[0].copies"},
		"too many copies":      {Definition{Steps: []Step{with(task("a"), func(s *Step) { s.Copies = number(MaxUnits + 1) })}}, refusal.TooManySteps, "steps[0].copies"},
		"too many units":       {Definition{Steps: []Step{with(task("a"), func(s *Step) { s.Copies = number(MaxUnits) }), task("b")}}, refusal.TooManySteps, "steps"},
		"too many conditions":  {Definition{Steps: []Step{with(task("a"), func(s *Step) { s.After = many })}}, refusal.TooManySteps, "steps[0].after"},
		"too deep":             {deep, refusal.WorkflowTooLarge, strings.Repeat("steps[0].child.", MaxDepth) + "steps"},
		"in a child":           {Definition{Steps: []Step{{Name: "a", Child: &Child{Definition: Definition{Steps: []Step{task("a", "b")}}}}}}, refusal.BadGraph, "steps[0].child.steps[0].after[0]"},
		"a wait for nothing":   {Definition{Steps: []Step{{Name: "a", Wait: &Wait{}}}}, refusal.BadWait, "steps[0].wait"},
		"a wait for two":       {Definition{Steps: []Step{{Name: "a", Wait: &Wait{Delay: 1, Signal: "s"}}}}, refusal.BadWait, "steps[0].wait"},
		"a timeout of a delay": {Definition{Steps: []Step{{Name: "a", Wait: &Wait{Delay: 1, Timeout: 1}}}}, refusal.BadWait, "steps[0].wait"},
		"too long a wait":      {Definition{Steps: []Step{{Name: "a", Wait: &Wait{Delay: MaxTime + 1}}}}, refusal.OutOfRangeField, "steps[0].wait.delay_ms"},
		"a bad signal":         {Definition{Steps: []Step{{Name: "a", Wait: &Wait{Signal: "a b"}}}}, refusal.BadName, "steps[0].wait.signal"},
		"too long a timeout":   {Definition{Steps: []Step{task("a")}, Timeout: MaxTime + 1}, refusal.OutOfRangeField, "timeout_ms"},
		"too short to keep":    {Definition{Steps: []Step{task("a")}, Retention: 1}, refusal.OutOfRangeField, "retention_ms"},
		"a result of nothing":  {Definition{Steps: []Step{task("a")}, ResultOf: "b"}, refusal.BadGraph, "result_of"},
		"a label twice":        {Definition{Steps: []Step{task("a")}, Labels: []store.Attribute{{Key: "a"}, {Key: "a"}}}, refusal.BadWorkflow, "labels"},
	} {
		err := c.of.Check()
		if err == nil {
			t.Errorf("%s: taken", name)
			continue
		}
		if err.Reason != c.reason || err.Field != c.field {
			t.Errorf("%s: %s in %q (%s), want %s in %q", name, err.Reason, err.Field, err.Message, c.reason, c.field)
		}
	}
}

func TestCheckTakesALargeGraph(t *testing.T) {
	d := Definition{Steps: make([]Step, MaxUnits)}
	for i := range d.Steps {
		d.Steps[i] = Step{Name: fmt.Sprint("s", i), Task: &Template{}}
		for j := max(0, i-3); j < i; j++ {
			d.Steps[i].After = append(d.Steps[i].After, After{Step: fmt.Sprint("s", j)})
		}
	}
	if err := d.Check(); err != nil {
		t.Fatal(err)
	}
}

func TestCheckNamesTheStepsOfACycle(t *testing.T) {
	d := Definition{Steps: []Step{
		{Name: "a", Task: &Template{}, After: []After{{Step: "b"}}},
		{Name: "b", Task: &Template{}, After: []After{{Step: "a"}}},
	}}
	if err := d.Check(); err == nil || !strings.HasSuffix(err.Message, "in a cycle: a, b") {
		t.Fatal(err)
	}
}
