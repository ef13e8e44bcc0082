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
}

type bar struct {
	X, Y, Width, Height int
	Count               int64
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
			bars, rows = append(bars, b.rect()), append(rows, b.row())
		}
	}
	return h.Figure(
		h.FigCaption(g.Text(c.Title+" "), Quiet(c.inWords())),
		g.El("svg", g.Attr("viewBox", fmt.Sprintf("0 0 %d %d", c.Width, c.Height)), g.Attr("preserveAspectRatio", "none"), h.Role("img"), h.Aria("label", c.Title+": "+CountText(c.Sum)+" tasks"),
			g.El("line", Measure("x1", 0), Measure("y1", c.Height), Measure("x2", c.Width), Measure("y2", c.Height)), bars),
		Fold("As numbers", h.Table(h.THead(h.Tr(Heads("from (UTC)"), NumberHeads("tasks"))), h.TBody(rows))),
	)
}

// inWords is what the picture comes to.
func (c *Columns) inWords() string {
	text := CountText(c.Sum) + " in all, " + CountText(c.Most) + " at most"
	if c.Before != 0 {
		text += "; " + CountText(c.Before) + " are due already"
	}
	if c.After != 0 {
		text += "; " + CountText(c.After) + " later"
	}
	return text
}

func (b *bar) rect() g.Node {
	return g.El("rect", Measure("x", b.X), Measure("y", b.Y), Measure("width", b.Width), Measure("height", b.Height),
		g.El("title", g.Text(ClockText(b.At)+" "+CountText(b.Count))))
}

func (b *bar) row() g.Node { return h.Tr(Cells(ClockText(b.At)), Counts(b.Count)) }
