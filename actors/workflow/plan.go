package workflow

import "github.com/ddq-io/ddq/actors/workflow/graph"

// plan has the steps of a workflow by number: those of its definition, then those that grew.
type plan struct {
	steps []node
	byID  map[string]int
}

// node is a step in the plan.
type node struct {
	*graph.Step
	name   string // in full
	first  int    // its first unit
	units  int
	after  []edge
	before []int // steps that wait for it
	parent int   // of which it grew; -1: it is of the definition
	grew   []int // steps that grew from it
}

// edge is a condition of a step.
type edge struct {
	step  int
	on    graph.On
	grown bool
}

// of returns the plan of a workflow.
func (w *Workflow) of() *plan {
	if w.plan == nil {
		w.plan = newPlan(w.Def.Steps)
		for i := range w.Grown {
			w.plan.grow(&w.Grown[i])
		}
	}
	return w.plan
}

func newPlan(steps []graph.Step) *plan {
	g := &plan{byID: make(map[string]int, len(steps))}
	g.add(steps, "", -1)
	return g
}

// grow adds what an ack added.
func (g *plan) grow(grown *Grown) {
	g.add(grown.Steps, grown.Parent+".", g.byID[graph.StepOf(grown.Parent)])
}

// add adds steps that wait for each other only.
func (g *plan) add(steps []graph.Step, prefix string, parent int) {
	from, unit := len(g.steps), g.units()
	for i := range steps {
		s := &steps[i]
		n := node{Step: s, name: prefix + s.Name, first: unit, units: s.Units(), parent: parent}
		unit += n.units
		g.byID[n.name] = from + i
		g.steps = append(g.steps, n)
		if parent >= 0 {
			g.steps[parent].grew = append(g.steps[parent].grew, from+i)
		}
	}
	for i := from; i < len(g.steps); i++ {
		n := &g.steps[i]
		for _, a := range n.After {
			at := g.byID[prefix+a.Step]
			n.after = append(n.after, edge{at, a.On, a.Grown})
			g.steps[at].before = append(g.steps[at].before, i)
		}
	}
}

// units is how many units all steps have.
func (g *plan) units() int {
	if len(g.steps) == 0 {
		return 0
	}
	last := &g.steps[len(g.steps)-1]
	return last.first + last.units
}

// unitsIn are the units of a step.
func (n *node) unitsIn(w *Workflow) []Unit { return w.Units[n.first : n.first+n.units] }

// copyOf is the number of the copy that a unit is; 0: the step has no copies.
func (n *node) copyOf(unit int) int {
	if n.Copies == nil || *n.Copies == 0 {
		return 0
	}
	return unit - n.first + 1
}

// empty reports whether a step has no copies at all: its one unit stands for all of them.
func (n *node) empty() bool { return n.Copies != nil && *n.Copies == 0 }

// handles reports whether a step is there for when others fail.
func (n *node) handles() bool {
	for _, a := range n.after {
		if a.on != graph.OnDone {
			return true
		}
	}
	return false
}

// find returns the step of a unit.
func (g *plan) find(unit int) *node {
	low, high := 0, len(g.steps)
	for high-low > 1 {
		if mid := (low + high) / 2; g.steps[mid].first <= unit {
			low = mid
		} else {
			high = mid
		}
	}
	return &g.steps[low]
}

// unitNamed is the name of a unit.
func (g *plan) unitNamed(unit int) string {
	n := g.find(unit)
	return graph.UnitName(n.name, n.copyOf(unit))
}
