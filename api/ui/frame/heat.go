package frame

import (
	"fmt"
	"math"
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// Heat is a table of counts. The more a cell has, the more colour: the colours are steps of a logarithm.
type Heat struct {
	Title string
	Heads []string // of the columns; the first is that of the rows' names
	Rows  []HeatRow
}

// HeatRow is a row with its name. It may have fewer cells than there are columns.
type HeatRow struct {
	Name  string
	Cells []HeatCell
}

// HeatCell is how many there are at a place.
type HeatCell struct {
	Count  int64
	Says   string // to those who point at it
	Leads  string // the address of who they are; empty: nowhere
	Marked bool   // a sign says that something is wrong with it
}

// heatLevels is how many colours there are beside that of none.
const heatLevels = 9

// Picture is the table; note is said below it.
func (m *Heat) Picture(note ...g.Node) g.Node {
	most := int64(0)
	for _, r := range m.Rows {
		for _, c := range r.Cells {
			most = max(most, c.Count)
		}
	}
	heads := g.Group{Heads(m.Heads[0]), NumberHeads(m.Heads[1:]...)}
	rows := g.Map(m.Rows, func(r HeatRow) g.Node {
		return h.Tr(RowHead(g.Text(r.Name)), g.Map(r.Cells, func(c HeatCell) g.Node { return c.cell(most) }))
	})
	return h.Figure(h.Class("heat"), Table(m.Title, m.Title, heads, rows), g.Group(note))
}

func (c *HeatCell) cell(most int64) g.Node {
	text := g.Group{g.Text(shortText(c.Count)), g.If(c.Marked, h.B(g.Text("!")))}
	switch {
	case c.Count <= 0:
		return h.Td()
	case c.Leads != "":
		text = g.Group{h.A(h.Href(c.Leads), h.Title(c.Says), text)}
	}
	return h.Td(h.Class("heat-"+strconv.Itoa(heatLevel(c.Count, most))), g.If(c.Leads == "", h.Title(c.Says)), text)
}

// heatLevel is the colour of n, of 1 to heatLevels; most has the last one.
func heatLevel(n, most int64) int {
	switch {
	case n <= 0:
		return 0
	case n >= most:
		return heatLevels
	}
	return 1 + int((heatLevels-1)*math.Log(float64(n))/math.Log(float64(most)))
}

// shortText is a number in four characters: 999, 1.2k, 12k, 3.4M.
func shortText(n int64) string {
	const units = " kMGTPE"
	of, unit := float64(n), 0
	for ; of >= 999.5 && unit < len(units)-1; unit++ {
		of /= 1000
	}
	switch {
	case unit == 0:
		return strconv.FormatInt(n, 10)
	case of < 9.95:
		return fmt.Sprintf("%.1f%c", of, units[unit])
	}
	return fmt.Sprintf("%.0f%c", of, units[unit])
}
