package ledger

import (
	"errors"
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// WriteChart draws lateness over time as SVG: the worst of each step, with the time of
// each fault in red. Histories are drawn on one axis, by the time of day.
func WriteChart(path string, verdicts []*Verdict) error {
	var begin int64
	points := 0
	for _, v := range verdicts {
		points += len(v.Series)
		if begin == 0 || v.Began < begin {
			begin = v.Began
		}
	}
	if points == 0 {
		return errors.New("chart: nothing was delivered")
	}
	p := plot.New()
	p.Title.Text = "lateness, and faults"
	p.X.Label.Text = "seconds"
	p.Y.Label.Text = "ms"
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Y.Min, p.Y.Max = 0.1, 100_000
	p.Add(plotter.NewGrid())
	for _, v := range verdicts {
		if err := v.draw(p, float64(v.Began-begin)/1e9); err != nil {
			return fmt.Errorf("chart: %w", err)
		}
	}
	return p.Save(40*vg.Centimeter, 12*vg.Centimeter, path)
}

// draw adds one history, which began at a second.
func (v *Verdict) draw(p *plot.Plot, began float64) error {
	for _, f := range v.Faults {
		from, to := began+f.From, began+f.To
		band, err := plotter.NewPolygon(plotter.XYs{{X: from, Y: p.Y.Min}, {X: to, Y: p.Y.Min}, {X: to, Y: p.Y.Max}, {X: from, Y: p.Y.Max}})
		if err != nil {
			return err
		}
		band.Color = color.RGBA{0xff, 0xd8, 0xd8, 0xff}
		band.LineStyle.Width = 0
		p.Add(band)
	}
	worst, middle := make(plotter.XYs, len(v.Series)), make(plotter.XYs, len(v.Series))
	for i, s := range v.Series {
		worst[i] = plotter.XY{X: began + s.At, Y: max(s.Max, p.Y.Min)}
		middle[i] = plotter.XY{X: began + s.At, Y: max(s.P50, p.Y.Min)}
	}
	for _, curve := range []struct {
		points plotter.XYs
		color  color.Color
	}{{worst, color.RGBA{0xd6, 0x27, 0x28, 0xff}}, {middle, color.RGBA{0x1f, 0x77, 0xb4, 0xff}}} {
		line, err := plotter.NewLine(curve.points)
		if err != nil {
			return err
		}
		line.Color, line.Width = curve.color, vg.Points(0.7)
		p.Add(line)
	}
	return nil
}
