// Package chart draws what rounds measured: lateness over time, and what was broken meanwhile.
package chart

import (
	"errors"
	"fmt"
	"image/color"
	"math"
	"os"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// Run is one history for the chart.
type Run struct {
	Name    string // what was broken, and where
	Verdict *verdict.Verdict
}

const (
	rowSeconds = 240.0 // how much of the time a row of the chart shows
	rowWidth   = 40 * vg.Centimeter
	rowHeight  = 8 * vg.Centimeter
	leastLate  = 0.5 // ms; the axis is logarithmic
	mostLate   = 100_000
)

// Write draws lateness over time as SVG, the histories one after the other in rows
// of some minutes: the worst and the middle of each step, and the time of each fault in
// red under its name. What is beyond the axis is at its end.
func Write(path string, runs []Run) (err error) {
	rows := layOut(runs)
	if len(rows) == 0 {
		return errors.New("chart: nothing was delivered")
	}
	canvas := vgsvg.New(rowWidth, rowHeight*vg.Length(len(rows)))
	all := draw.New(canvas)
	for i, row := range rows {
		p, err := row.plot()
		if err != nil {
			return fmt.Errorf("chart: %w", err)
		}
		above := rowHeight * vg.Length(len(rows)-1-i)
		p.Draw(draw.Crop(all, 0, 0, above, -rowHeight*vg.Length(i)))
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = canvas.WriteTo(f)
	return errors.Join(err, f.Close())
}

// row is a part of the chart, as wide as all others.
type row struct {
	from float64 // seconds
	runs []placed
}

// placed is a history at its place in a row.
type placed struct {
	Run
	at float64 // seconds
}

// layOut puts the histories one after the other.
func layOut(runs []Run) (rows []*row) {
	at := 0.0
	for _, r := range runs {
		if len(r.Verdict.Series) == 0 {
			continue
		}
		long := seconds(r.Verdict) + 2
		if len(rows) == 0 || at+long > rows[len(rows)-1].from+rowSeconds && len(rows[len(rows)-1].runs) > 0 {
			rows = append(rows, &row{from: at})
		}
		last := rows[len(rows)-1]
		last.runs = append(last.runs, placed{r, at})
		at += long
	}
	return rows
}

// seconds is how much of the chart a history takes.
func seconds(v *verdict.Verdict) (end float64) {
	for _, s := range v.Series {
		end = max(end, s.At)
	}
	for _, f := range v.Faults {
		end = max(end, f.To)
	}
	return end
}

func (r *row) plot() (*plot.Plot, error) {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = "seconds", "late, ms"
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.X.Min, p.X.Max = r.from, r.from+rowSeconds
	p.Y.Min, p.Y.Max = leastLate, mostLate
	p.Add(plotter.NewGrid())
	names := plotter.XYLabels{}
	for _, run := range r.runs {
		if err := run.draw(p); err != nil {
			return nil, err
		}
		names.XYs = append(names.XYs, plotter.XY{X: run.at + 1, Y: mostLate / 1.3})
		names.Labels = append(names.Labels, run.Name)
	}
	labels, err := plotter.NewLabels(names)
	if err != nil {
		return nil, err
	}
	for i := range labels.TextStyle {
		labels.TextStyle[i].Rotation = -math.Pi / 2
		labels.TextStyle[i].Font.Size = font.Length(9)
		labels.TextStyle[i].YAlign = draw.YTop
	}
	p.Add(labels)
	p.X.Min, p.X.Max = r.from, r.from+rowSeconds // whatever lies at the edges
	p.Y.Min, p.Y.Max = leastLate, mostLate
	return p, nil
}

// draw adds one history.
func (r *placed) draw(p *plot.Plot) error {
	v := r.Verdict
	for _, f := range v.Faults {
		from, to := r.at+f.From, r.at+f.To
		band, err := plotter.NewPolygon(plotter.XYs{{X: from, Y: leastLate}, {X: to, Y: leastLate}, {X: to, Y: mostLate}, {X: from, Y: mostLate}})
		if err != nil {
			return err
		}
		band.Color = color.RGBA{0xff, 0xd8, 0xd8, 0xff}
		band.LineStyle.Width = 0
		p.Add(band)
	}
	worst, middle := make(plotter.XYs, len(v.Series)), make(plotter.XYs, len(v.Series))
	for i, s := range v.Series {
		worst[i] = plotter.XY{X: r.at + s.At, Y: min(max(s.Max, leastLate), mostLate)}
		middle[i] = plotter.XY{X: r.at + s.At, Y: min(max(s.P50, leastLate), mostLate)}
	}
	for _, curve := range []struct {
		points plotter.XYs
		color  color.Color
	}{{worst, color.RGBA{0xd6, 0x27, 0x28, 0xff}}, {middle, color.RGBA{0x1f, 0x77, 0xb4, 0xff}}} {
		line, err := plotter.NewLine(curve.points)
		if err != nil {
			return err
		}
		line.Color, line.Width = curve.color, vg.Points(0.8)
		p.Add(line)
	}
	return nil
}
