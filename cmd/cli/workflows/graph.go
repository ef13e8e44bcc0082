package workflows

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ddq-io/ddq/api/client"
)

// group is a step with its copies.
type group struct {
	name, grew string
	after      []string
	states     []client.StepState // in the order in which they come up
	counts     map[client.StepState]int
	layer      int
}

// grouped joins the copies of steps, and finds how far each is from the beginning.
func grouped(steps []client.StepStatus) []*group {
	var all []*group
	byName := make(map[string]*group)
	for i := range steps {
		s := &steps[i]
		g := byName[s.Name]
		if g == nil {
			g = &group{name: s.Name, grew: s.GrownFrom, counts: make(map[client.StepState]int)}
			parent, _, grown := strings.Cut(s.Name, ".")
			for _, a := range s.After {
				if grown {
					a = parent + "." + a
				}
				g.after = append(g.after, a)
			}
			if grown {
				g.after = append(g.after, parent)
			}
			byName[s.Name], all = g, append(all, g)
		}
		if g.counts[s.State] == 0 {
			g.states = append(g.states, s.State)
		}
		g.counts[s.State]++
	}
	for changed := true; changed; { // steps may wait for later ones of the list, never in a cycle
		changed = false
		for _, g := range all {
			for _, a := range g.after {
				if before := byName[a]; before != nil && before.layer >= g.layer {
					g.layer, changed = before.layer+1, true
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *group) int { return a.layer - b.layer })
	return all
}

// text is a group with its state, and with numbers where it has copies.
func (g *group) text() string {
	var parts []string
	for _, s := range g.states {
		part := s.String()
		if n := g.counts[s]; n > 1 || len(g.states) > 1 {
			part = fmt.Sprintf("%d %s", n, s)
		}
		parts = append(parts, part)
	}
	return g.name + " [" + strings.Join(parts, ", ") + "]"
}

// writeLayers prints what can be done side by side in one line, and what waits below.
func writeLayers(w io.Writer, steps []client.StepStatus) error {
	layer := 0
	var b strings.Builder
	for i, g := range grouped(steps) {
		switch {
		case i > 0 && g.layer != layer:
			b.WriteString("\n  │\n")
			layer = g.layer
		case i > 0:
			b.WriteString("   ")
		}
		b.WriteString(g.text())
	}
	_, err := fmt.Fprintln(w, b.String())
	return err
}

// writeDot prints the graph for Graphviz.
func writeDot(w io.Writer, id string, steps []client.StepStatus) error {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %q {\n  rankdir=LR; node [shape=box];\n", id)
	for _, g := range grouped(steps) {
		fmt.Fprintf(&b, "  %q [label=%q];\n", g.name, g.text())
		for _, a := range g.after {
			fmt.Fprintf(&b, "  %q -> %q;\n", a, g.name)
		}
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}
