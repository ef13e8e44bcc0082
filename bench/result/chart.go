package result

import (
	"errors"
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// chartTicks are the percentiles that the chart names; its x axis is
// 1/(1-quantile), so that each further nine is as wide as the one before.
var chartTicks = []float64{0, 50, 90, 99, 99.9, 99.99, 99.999}

// WriteChart draws the lateness distribution of every line that has one, as SVG.
func WriteChart(path string, lines []Line) error {
	p := plot.New()
	p.Title.Text = "lateness"
	p.X.Label.Text = "percentile"
	p.Y.Label.Text = "ms"
	p.X.Scale = plot.LogScale{}
	p.X.Tick.Marker = plot.ConstantTicks(percentileTicks())
	p.Add(plotter.NewGrid())
	p.Legend.Top, p.Legend.Left = true, true

	drawn := 0
	for _, l := range lines {
		points := curve(l)
		if len(points) < 2 {
			continue
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return fmt.Errorf("chart: %w", err)
		}
		line.Color = palette[drawn%len(palette)]
		line.Width = vg.Points(1.5)
		p.Add(line)
		p.Legend.Add(fmt.Sprintf("%s %s %s %s, backlog %d", l.System, l.Store, l.Workload, l.Mode, l.Backlog), line)
		drawn++
	}
	if drawn == 0 {
		return errors.New("chart: no lateness was measured")
	}
	p.Y.Max *= 1 + 0.06*float64(drawn) // room for the legend
	return p.Save(20*vg.Centimeter, 12*vg.Centimeter, path)
}

var palette = []color.Color{
	color.RGBA{0x1f, 0x77, 0xb4, 0xff}, color.RGBA{0xd6, 0x27, 0x28, 0xff}, color.RGBA{0x2c, 0xa0, 0x2c, 0xff},
	color.RGBA{0x94, 0x67, 0xbd, 0xff}, color.RGBA{0xff, 0x7f, 0x0e, 0xff}, color.RGBA{0x17, 0xbe, 0xcf, 0xff},
}

// curve is the distribution of a line, a point for each of its percentiles.
func curve(l Line) plotter.XYs {
	if l.Late == nil {
		return nil
	}
	var points plotter.XYs
	for _, b := range l.Late.CumulativeDistributionWithTicks(8) {
		if b.Quantile >= 100 {
			continue // infinitely far to the right
		}
		points = append(points, plotter.XY{X: chartX(b.Quantile), Y: float64(b.ValueAt) / 1000})
	}
	return points
}

func chartX(percentile float64) float64 { return 1 / (1 - percentile/100) }

func percentileTicks() []plot.Tick {
	var ticks []plot.Tick
	for _, p := range chartTicks {
		ticks = append(ticks, plot.Tick{Value: math.Round(chartX(p)*1000) / 1000, Label: fmt.Sprintf("%g%%", p)})
	}
	return ticks
}
