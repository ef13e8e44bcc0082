package verdict

import (
	"maps"
	"slices"
	"time"
)

// Band is the time of a fault, in seconds from the beginning.
type Band struct {
	From float64 `json:"from_s"`
	To   float64 `json:"to_s"`
}

// Point is the lateness of what became due in a step: seconds from the beginning, and
// milliseconds.
type Point struct {
	At  float64 `json:"at_s"`
	P50 float64 `json:"p50_ms"`
	Max float64 `json:"max_ms"`
}

// bands are the times of the faults.
func (r *Run) bands() (all []Band) {
	seconds := func(mono int64) float64 { return float64(mono-r.From) / 1e9 }
	for _, f := range r.Faults {
		all = append(all, Band{seconds(f.From), seconds(min(f.To, r.To))})
	}
	return all
}

// step is how much time a point of the chart stands for.
const step = int64(200 * time.Millisecond)

// series is the lateness of what was served.
func (r *Run) series() (points []Point) {
	steps := map[int64][]int64{} // lateness in ns
	for _, m := range r.Served {
		n := max(m.Wanted-r.From, 0) / step // a clock that was set may say that it was due long before
		steps[n] = append(steps[n], m.Got-m.Wanted)
	}
	for _, n := range slices.Sorted(maps.Keys(steps)) {
		late := steps[n]
		slices.Sort(late)
		points = append(points, Point{
			At: float64(n*step) / 1e9, P50: milliseconds(time.Duration(late[len(late)/2])), Max: milliseconds(time.Duration(late[len(late)-1])),
		})
	}
	return points
}
