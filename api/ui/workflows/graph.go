package workflows

import (
	"fmt"
	"slices"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// Of the picture of a workflow, in its own units.
const (
	stepsDrawn = 200 // beyond it the table says more than a picture

	stepWidth  = 150
	stepHeight = 44
	stepAside  = 60 // between columns
	stepBelow  = 16 // between rows
	stepText   = 18 // characters

	widestFit = 6*stepWidth + 5*stepAside + 1 // a picture up to this is made smaller where the page is narrower, as long as its texts can be read
)

// graph is a picture of a workflow: steps in columns, each to the right of those that it waits for.
type graph struct {
	Width, Height int
	Boxes         []box
	Lines         []string // paths
}

type box struct {
	X, Y, Width, Height int
	TextX, NameY, HowY  int
	Name, Short, State  string
	Round               int // of waits and children
}

// newGraph draws the steps of a workflow; copies of a step are one box. It returns nil when there
// are too many.
func newGraph(steps []*ddqv1.StepStatus) *graph {
	nodes, order := group(steps)
	if len(order) == 0 || len(order) > stepsDrawn {
		return nil
	}
	drawn, rows, at := new(graph), map[int]int{}, map[string]box{}
	for _, name := range order {
		level := nodes[name].level(nodes)
		b := nodes[name].box(level, rows[level])
		rows[level]++
		at[name], drawn.Boxes = b, append(drawn.Boxes, b)
		drawn.Width, drawn.Height = max(drawn.Width, b.X+stepWidth+1), max(drawn.Height, b.Y+stepHeight+1)
	}
	for _, name := range order {
		for _, before := range nodes[name].after {
			if from, ok := at[before]; ok {
				drawn.Lines = append(drawn.Lines, line(from, at[name]))
			}
		}
	}
	return drawn
}

// node is a step with all its copies.
type node struct {
	name   string
	kind   ddqv1.StepKind
	after  []string
	states []ddqv1.StepState
	column int // -1: not known yet
}

// group puts the copies of steps together; names are in the order of their first copies.
func group(steps []*ddqv1.StepStatus) (nodes map[string]*node, order []string) {
	nodes = make(map[string]*node)
	for _, s := range steps {
		n := nodes[s.GetName()]
		if n == nil {
			n = &node{name: s.GetName(), kind: s.GetKind(), column: -1}
			for _, a := range s.GetAfter() {
				n.after = append(n.after, a.GetStep())
			}
			if from := s.GetGrownFrom(); from != "" && len(n.after) == 0 {
				n.after = []string{from}
			}
			nodes[n.name], order = n, append(order, n.name)
		}
		n.states = append(n.states, s.GetState())
	}
	return nodes, order
}

// level is the column of a step: one more than that of the last step that it waits for. The server
// takes no workflow with a circle; should there be one, it ends in the first column.
func (n *node) level(nodes map[string]*node) int {
	if n.column >= 0 {
		return n.column
	}
	n.column = 0
	level := 0
	for _, name := range n.after {
		if before := nodes[name]; before != nil && before != n {
			level = max(level, before.level(nodes)+1)
		}
	}
	n.column = level
	return level
}

func (n *node) box(column, row int) box {
	b := box{
		X: 1 + column*(stepWidth+stepAside), Y: 1 + row*(stepHeight+stepBelow), Width: stepWidth, Height: stepHeight,
		Name: n.name, Short: shorten(n.name), State: n.state(), Round: 4,
	}
	if n.kind != ddqv1.StepKind_STEP_KIND_TASK {
		b.Round = stepHeight / 2
	}
	b.TextX, b.NameY, b.HowY = b.X+stepWidth/2, b.Y+18, b.Y+35
	return b
}

func shorten(name string) string {
	if r := []rune(name); len(r) > stepText {
		return string(r[:stepText-1]) + "…"
	}
	return name
}

// urgent are states in the order in which they speak for a step with copies.
var urgent = []ddqv1.StepState{
	ddqv1.StepState_STEP_STATE_FAILED, ddqv1.StepState_STEP_STATE_UNDO_FAILED, ddqv1.StepState_STEP_STATE_UNDOING, ddqv1.StepState_STEP_STATE_MADE,
	ddqv1.StepState_STEP_STATE_WAITING, ddqv1.StepState_STEP_STATE_CANCELLED, ddqv1.StepState_STEP_STATE_UNDONE, ddqv1.StepState_STEP_STATE_SKIPPED, ddqv1.StepState_STEP_STATE_DONE,
}

// state is that of the most urgent copy.
func (n *node) state() string {
	for _, s := range urgent {
		if slices.Contains(n.states, s) {
			return frame.StateText(s)
		}
	}
	return ""
}

// line leads from the right side of a box to the left side of another.
func line(from, to box) string {
	x, y, x2, y2 := from.X+stepWidth, from.Y+stepHeight/2, to.X, to.Y+stepHeight/2
	half := (x + x2) / 2
	return fmt.Sprintf("M%d %d C%d %d %d %d %d %d", x, y, half, y, half, y2, x2, y2)
}

// picture is the graph as it is drawn; nothing of none.
func (p *graph) picture() g.Node {
	if p == nil {
		return nil
	}
	class, more := "graph", "The picture is wider than a page: it is scrolled to the right."
	if p.Width <= widestFit {
		class, more = "graph fits", ""
	}
	picture := g.Group{
		h.Class(class), frame.Measure("width", p.Width), frame.Measure("height", p.Height), g.Attr("viewBox", fmt.Sprintf("0 0 %d %d", p.Width, p.Height)),
		h.Role("img"), h.Aria("label", "The steps, each to the right of those that it waits for; the table below says the same"),
		g.Map(p.Lines, func(line string) g.Node { return g.El("path", g.Attr("d", line)) }),
		g.Map(p.Boxes, box.shape),
	}
	return g.Group{
		h.H2(g.Text("Graph")),
		h.Div(h.Class("wide"), h.Role("region"), h.Aria("label", "Graph"), h.TabIndex("0"), g.El("svg", picture)),
		g.If(more != "", h.P(h.Class("quiet"), g.Text(more))),
	}
}

func (b box) shape() g.Node {
	m := frame.Measure
	return g.El("g", h.Class("step "+b.State),
		g.El("title", g.Text(b.Name+": "+b.State)),
		g.El("rect", m("x", b.X), m("y", b.Y), m("width", b.Width), m("height", b.Height), m("rx", b.Round)),
		g.El("text", m("x", b.TextX), m("y", b.NameY), g.Text(b.Short)),
		g.El("text", m("x", b.TextX), m("y", b.HowY), h.Class("how"), g.Text(b.State)),
	)
}
