package frame

import (
	"fmt"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// Of the picture, in its own units.
const (
	columnWidth  = 10
	columnGap    = 2
	columnHeight = 100
)

// Columns are tasks by due time: a picture, and the numbers behind it.
type Columns struct {
	Title         string
	Width, Height int
	Bars          []bar
	Most, Sum     int64
	Before, After int64 // due before the first and behind the last
	Bucket        time.Duration
	Planned       int64 // of Sum, what is not made yet
	planned       bool  // it is known how much that is
}

type bar struct {
	X, Y, Width, Height int
	Count               int64
	Planned, Top        int64     // of Count, what is not made yet; and how high that is
	At                  time.Time // it begins
}

// NewColumns are those of counts of buckets, of which the first begins at from.
func NewColumns(title string, from time.Time, bucket time.Duration, counts []int64) *Columns {
	c := &Columns{Title: title, Width: len(counts) * columnWidth, Height: columnHeight, Bucket: bucket}
	for _, n := range counts {
		c.Most, c.Sum = max(c.Most, n), c.Sum+n
	}
	for i, n := range counts {
		b := bar{X: i * columnWidth, Width: columnWidth - columnGap, Count: n, At: from.Add(time.Duration(i) * bucket)}
		if n > 0 { // what is there is seen, however little it is
			b.Height = max(2, int(n*columnHeight/c.Most))
		}
		b.Y = columnHeight - b.Height
		c.Bars = append(c.Bars, b)
	}
	return c
}

// NewPlanned are columns of which a part is planned: due then, and not made yet.
func NewPlanned(title string, from time.Time, bucket time.Duration, there, planned []int64) *Columns {
	sum := make([]int64, len(there))
	for i, n := range there {
		sum[i] = n + planned[i]
	}
	c := NewColumns(title, from, bucket, sum)
	c.planned = true
	for i := range c.Bars {
		b := &c.Bars[i]
		b.Planned = planned[i]
		if b.Planned > 0 {
			b.Top = max(1, int64(b.Height)*b.Planned/b.Count)
		}
		c.Planned += b.Planned
	}
	return c
}

// Add puts the columns of another topic, which begin at the same time, on top.
func (c *Columns) Add(o *Columns) *Columns {
	if c == nil {
		return o
	}
	counts := make([]int64, len(c.Bars))
	for i := range counts {
		counts[i] = c.Bars[i].Count + o.Bars[i].Count
	}
	sum := NewColumns(c.Title, c.Bars[0].At, c.Bucket, counts)
	sum.Before, sum.After = c.Before+o.Before, c.After+o.After
	return sum
}

// Picture is the columns with the numbers behind it; nothing of no columns.
func (c *Columns) Picture() g.Node {
	if c == nil {
		return nil
	}
	var bars, rows g.Group
	for _, b := range c.Bars {
		if b.Count > 0 {
			bars, rows = append(bars, b.rect(c)), append(rows, b.row(c))
		}
	}
	return h.Figure(
		h.FigCaption(g.Text(c.Title+" "), Quiet(c.inWords())),
		g.El("svg", g.Attr("viewBox", fmt.Sprintf("0 0 %d %d", c.Width, c.Height)), g.Attr("preserveAspectRatio", "none"), h.Role("img"), h.Aria("label", c.Title+": "+CountText(c.Sum)+" tasks"),
			g.El("line", Measure("x1", 0), Measure("y1", c.Height), Measure("x2", c.Width), Measure("y2", c.Height)), bars),
		Fold("As numbers", h.Table(h.THead(h.Tr(Heads("from (UTC)"), NumberHeads("tasks"), g.If(c.planned, NumberHeads("of these planned")))), h.TBody(rows))),
	)
}

// inWords is what the picture comes to.
func (c *Columns) inWords() string {
	text := CountText(c.Sum) + " in all, " + CountText(c.Most) + " at most"
	if c.Planned != 0 {
		text += "; " + CountText(c.Planned) + " of these are planned, and drawn as outlines"
	}
	if c.Before != 0 {
		text += "; " + CountText(c.Before) + " are due already"
	}
	if c.After != 0 {
		text += "; " + CountText(c.After) + " later"
	}
	return text
}

// when a column begins, with its day where there may be several.
func (c *Columns) when(b *bar) string {
	if c.Bucket >= time.Hour {
		return HourText(b.At)
	}
	return ClockText(b.At)
}

func (b *bar) rect(c *Columns) g.Node {
	text := c.when(b) + " " + CountText(b.Count)
	if b.Planned > 0 {
		text += ", " + CountText(b.Planned) + " of these planned"
	}
	all := g.El("rect", Measure("x", b.X), Measure("y", b.Y), Measure("width", b.Width), Measure("height", b.Height), g.El("title", g.Text(text)))
	if b.Top == 0 {
		return all
	}
	return g.Group{all, g.El("rect", h.Class("planned"), Measure("x", b.X), Measure("y", b.Y), Measure("width", b.Width), Measure("height", int(b.Top)), g.El("title", g.Text(text)))}
}

func (b *bar) row(c *Columns) g.Node {
	return h.Tr(Cells(c.when(b)), Counts(b.Count), g.If(c.planned, Counts(b.Planned)))
}
