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

// manyAlike is how many steps side by side are told one by one, where nothing but their names differs.
const manyAlike = 20

// like reports whether nothing but the names of two steps without copies differs.
func (g *group) like(other *group) bool {
	alone := len(g.states) == 1 && len(other.states) == 1 && g.counts[g.states[0]] == 1 && other.counts[other.states[0]] == 1
	return alone && g.layer == other.layer && g.grew == other.grew && g.states[0] == other.states[0] && slices.Equal(g.after, other.after)
}

// alike is how many steps at the beginning of a list differ in nothing but their names.
func alike(all []*group) int {
	n := 1
	for n < len(all) && all[0].like(all[n]) {
		n++
	}
	return n
}

// writeLayers prints what can be done side by side in one line, and what waits below. Of many that are
// alike it names the first and the last.
func writeLayers(w io.Writer, steps []client.StepStatus) error {
	layer := 0
	var b strings.Builder
	for left := grouped(steps); len(left) > 0; {
		g := left[0]
		switch {
		case b.Len() > 0 && g.layer != layer:
			b.WriteString("\n  │\n")
			layer = g.layer
		case b.Len() > 0:
			b.WriteString("   ")
		}
		n := alike(left)
		if n > manyAlike {
			fmt.Fprintf(&b, "%s to %s [%d %s]", g.name, left[n-1].name, n, g.states[0])
		} else {
			n = 1
			b.WriteString(g.text())
		}
		left = left[n:]
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
