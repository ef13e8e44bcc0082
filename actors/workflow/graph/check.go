package graph

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	gonum "gonum.org/v1/gonum/graph"
	"gonum.org/v1/gonum/graph/simple"
	"gonum.org/v1/gonum/graph/topo"

	"github.com/ddq-io/ddq/actors/workflow/refusal"
	"github.com/ddq-io/ddq/store"
)

// Check refuses a definition that can never run. What its templates say is not looked at.
// Fields are named as on the wire: steps[3].after[0].
func (d *Definition) Check() *refusal.Error { return d.check("", 1) }

func (d *Definition) check(at string, depth int) *refusal.Error {
	switch {
	case depth > MaxDepth:
		return refusal.New(refusal.WorkflowTooLarge, at+"steps", "workflows are in each other deeper than %d", MaxDepth)
	case len(d.Steps) == 0:
		return refusal.New(refusal.BadGraph, at+"steps", "%ssteps is required: a workflow has at least one", at)
	case len(d.Name) > MaxName || !utf8.ValidString(d.Name):
		return refusal.New(refusal.BadName, at+"name", "%sname must be UTF-8 of at most %d bytes", at, MaxName)
	case d.Failure > CarryOn:
		return refusal.New(refusal.BadWorkflow, at+"failure", "%sfailure has no value %d", at, d.Failure)
	case d.Timeout < 0 || d.Timeout > MaxTime:
		return refusal.New(refusal.OutOfRangeField, at+"timeout_ms", "%stimeout_ms must be 0 to %d", at, MaxTime.Milliseconds())
	case d.Retention != 0 && (d.Retention < MinRetention || d.Retention > MaxTime):
		return refusal.New(refusal.OutOfRangeField, at+"retention_ms", "%sretention_ms must be %d to %d", at, MinRetention.Milliseconds(), MaxTime.Milliseconds())
	}
	if err := checkLabels(at, d.Labels); err != nil {
		return err
	}
	if err := checkSteps(at, d.Steps, depth); err != nil {
		return err
	}
	if d.ResultOf != "" && !slices.ContainsFunc(d.Steps, func(s Step) bool { return s.Name == d.ResultOf }) {
		return refusal.New(refusal.BadGraph, at+"result_of", "%sresult_of: there is no step %q", at, d.ResultOf)
	}
	return nil
}

// CheckGrowth refuses growth that no workflow takes, whatever is in it already.
func (g *Growth) CheckGrowth() *refusal.Error {
	if len(g.Steps) > MaxGrownSteps {
		return refusal.New(refusal.BadGraph, "grow.steps", "%d steps in an ack; at most %d are allowed", len(g.Steps), MaxGrownSteps)
	}
	if g.Again != nil && len(*g.Again) > MaxResult {
		return refusal.New(refusal.BadGraph, "grow.again", "grow.again has %d bytes; at most %d are allowed", len(*g.Again), MaxResult)
	}
	if err := g.checkSuspend(); err != nil {
		return err
	}
	for i, name := range g.Skip {
		if name == "" || len(name) > MaxStepName {
			return refusal.New(refusal.BadGraph, fmt.Sprintf("grow.skip[%d]", i), "the name of a step has 1 to %d characters", MaxStepName)
		}
	}
	return checkSteps("grow.", g.Steps, 1)
}

// checkSuspend refuses to suspend a step that would wait for nothing, or that ends.
func (g *Growth) checkSuspend() *refusal.Error {
	switch {
	case !g.Suspend:
		return nil
	case len(g.Steps) == 0:
		return refusal.New(refusal.BadGraph, "grow.suspend", "grow.suspend needs grow.steps to wait for")
	case g.Again != nil:
		return refusal.New(refusal.BadGraph, "grow.again", "grow.again is for the ack that ends its step; grow.suspend does not")
	}
	return nil
}

// checkSteps checks steps that wait for nothing but each other.
func checkSteps(at string, steps []Step, depth int) *refusal.Error {
	numbers := make(map[string]int, len(steps))
	units := 0
	for i := range steps {
		s := &steps[i]
		field := fmt.Sprintf("%ssteps[%d]", at, i)
		if err := s.check(field, depth); err != nil {
			return err
		}
		if first, there := numbers[s.Name]; there {
			return refusal.New(refusal.BadGraph, field+".name", "steps[%d] and steps[%d] are both called %q", first, i, s.Name)
		}
		numbers[s.Name] = i
		if units += s.Units(); units > MaxUnits {
			return refusal.New(refusal.TooManySteps, at+"steps", "over %d steps with their copies", MaxUnits)
		}
	}
	for i := range steps {
		if err := checkAfter(fmt.Sprintf("%ssteps[%d]", at, i), &steps[i], numbers); err != nil {
			return err
		}
	}
	return checkCycles(at, steps, numbers)
}

func (s *Step) check(field string, depth int) *refusal.Error {
	if !IsStepName(s.Name) {
		return refusal.New(refusal.BadGraph, field+".name", "%s.name must be 1 to %d letters, digits, _ or -", field, MaxName)
	}
	kinds := 0
	for _, there := range [...]bool{s.Task != nil, s.Wait != nil, s.Child != nil} {
		if there {
			kinds++
		}
	}
	switch {
	case kinds != 1:
		return refusal.New(refusal.BadGraph, field, "%s must have one of task, wait and child", field)
	case s.Copies != nil && s.Child != nil:
		return refusal.New(refusal.BadGraph, field+".copies", "%s: a child has no copies", field)
	case s.Copies != nil && (*s.Copies < 0 || *s.Copies > MaxUnits):
		return refusal.New(refusal.TooManySteps, field+".copies", "%s.copies must be 0 to %d", field, MaxUnits)
	case s.AtATime < 0 || s.AtATime > MaxUnits:
		return refusal.New(refusal.OutOfRangeField, field+".at_a_time", "%s.at_a_time must be 0 to %d", field, MaxUnits)
	case s.Wait != nil:
		return s.Wait.check(field + ".wait")
	case s.Child != nil:
		return s.Child.check(field+".child.", depth+1)
	}
	return nil
}

func (w *Wait) check(field string) *refusal.Error {
	kinds := 0
	for _, there := range [...]bool{w.Delay != 0, w.Until != 0, w.Signal != ""} {
		if there {
			kinds++
		}
	}
	switch {
	case kinds != 1:
		return refusal.New(refusal.BadWait, field, "%s must have one of delay_ms, until and signal", field)
	case w.Delay < 0 || w.Delay > MaxTime:
		return refusal.New(refusal.OutOfRangeField, field+".delay_ms", "%s.delay_ms must be 1 to %d", field, MaxTime.Milliseconds())
	case w.Until < 0 || w.Until > store.MaxDue:
		return refusal.New(refusal.OutOfRangeField, field+".until", "%s.until is no time that can be", field)
	case w.Timeout < 0 || w.Timeout > MaxTime:
		return refusal.New(refusal.OutOfRangeField, field+".timeout_ms", "%s.timeout_ms must be 0 to %d", field, MaxTime.Milliseconds())
	case w.Signal == "" && (w.Timeout != 0 || w.Otherwise != nil):
		return refusal.New(refusal.BadWait, field, "%s: timeout_ms and otherwise are of a signal", field)
	case w.Timeout == 0 && w.Otherwise != nil:
		return refusal.New(refusal.BadWait, field+".otherwise", "%s.otherwise needs timeout_ms", field)
	case w.Signal != "" && !IsStepName(w.Signal):
		return refusal.New(refusal.BadName, field+".signal", "%s.signal must be 1 to %d letters, digits, _ or -", field, MaxName)
	case len(w.Otherwise) > MaxResult:
		return refusal.New(refusal.ResultTooLarge, field+".otherwise", "%s.otherwise has %d bytes; at most %d are allowed", field, len(w.Otherwise), MaxResult)
	}
	return nil
}

func checkAfter(field string, s *Step, numbers map[string]int) *refusal.Error {
	if len(s.After) > MaxAfter {
		return refusal.New(refusal.TooManySteps, field+".after", "%s waits for %d steps; at most %d are allowed", field, len(s.After), MaxAfter)
	}
	if s.Need < 0 || s.Need > len(s.After) {
		return refusal.New(refusal.BadGraph, field+".need", "%s.need must be 0 to %d, the number of its after", field, len(s.After))
	}
	if s.CancelRest && s.Need == 0 {
		return refusal.New(refusal.BadGraph, field+".cancel_rest", "%s.cancel_rest needs need: without it no step is left over", field)
	}
	for i, a := range s.After {
		where := fmt.Sprintf("%s.after[%d]", field, i)
		if _, there := numbers[a.Step]; !there {
			return refusal.New(refusal.BadGraph, where, "%s: there is no step %q", where, a.Step)
		}
		if a.On > OnEnded {
			return refusal.New(refusal.BadGraph, where+".on", "%s.on has no value %d", where, a.On)
		}
		for _, b := range s.After[:i] {
			if a.Step == b.Step {
				return refusal.New(refusal.BadGraph, where, "%s: step %q is in after twice", where, a.Step)
			}
		}
	}
	return nil
}

// checkCycles names the steps of a cycle.
func checkCycles(at string, steps []Step, numbers map[string]int) *refusal.Error {
	inOrder := true // each waits for earlier ones only, as is usual: then there is no cycle to be looked for
	for i := range steps {
		inOrder = inOrder && !slices.ContainsFunc(steps[i].After, func(a After) bool { return numbers[a.Step] >= i })
	}
	if inOrder {
		return nil
	}
	g := simple.NewDirectedGraph()
	for i := range steps {
		g.AddNode(simple.Node(i))
	}
	for i := range steps {
		for j, a := range steps[i].After {
			if a.Step == steps[i].Name {
				field := fmt.Sprintf("%ssteps[%d].after[%d]", at, i, j)
				return refusal.New(refusal.BadGraph, field, "%s: step %q waits for itself", field, a.Step)
			}
			g.SetEdge(simple.Edge{F: simple.Node(numbers[a.Step]), T: simple.Node(i)})
		}
	}
	_, err := topo.Sort(g)
	if err == nil {
		return nil
	}
	var cycles topo.Unorderable
	if !errors.As(err, &cycles) {
		return refusal.New(refusal.BadGraph, at+"steps", "%ssteps: %v", at, err)
	}
	return cycleError(at, steps, numbers, cycles[0])
}

func cycleError(at string, steps []Step, numbers map[string]int, cycle []gonum.Node) *refusal.Error {
	in := make(map[string]bool)
	first := len(steps)
	var names []string
	for _, n := range cycle {
		in[steps[n.ID()].Name] = true
		first = min(first, int(n.ID()))
	}
	for name := range in {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return numbers[a] - numbers[b] })
	after := slices.IndexFunc(steps[first].After, func(a After) bool { return in[a.Step] })
	field := fmt.Sprintf("%ssteps[%d].after[%d]", at, first, after)
	return refusal.New(refusal.BadGraph, field, "%s: steps wait for each other in a cycle: %s", field, strings.Join(names[:min(len(names), 10)], ", "))
}

func checkLabels(at string, labels []store.Attribute) *refusal.Error {
	if len(labels) > MaxLabels {
		return refusal.New(refusal.BadWorkflow, at+"labels", "%d labels; at most %d are allowed", len(labels), MaxLabels)
	}
	for i, a := range labels {
		if a.Key == "" || len(a.Key) > 64 || len(a.Value) > 256 || !utf8.ValidString(a.Key) || !utf8.ValidString(a.Value) {
			return refusal.New(refusal.BadWorkflow, at+"labels", "a label has a key of 1 to 64 bytes and a value of at most 256, both UTF-8")
		}
		for _, b := range labels[:i] {
			if a.Key == b.Key {
				return refusal.New(refusal.BadWorkflow, at+"labels", "label %q is given twice", a.Key)
			}
		}
	}
	return nil
}
