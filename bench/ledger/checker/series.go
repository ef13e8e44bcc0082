package checker

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
func (h *History) bands() (all []Band) {
	seconds := func(mono int64) float64 { return float64(mono-h.from) / 1e9 }
	for _, f := range h.faults {
		all = append(all, Band{seconds(f.from), seconds(min(f.to, h.to))})
	}
	return all
}

// step is how much time a point of the chart stands for.
const step = int64(200 * time.Millisecond)

// series is the lateness of what was served in a run that began at from.
func series(from int64, served []moment) (points []Point) {
	steps := map[int64][]int64{} // lateness in ns
	for _, m := range served {
		n := max(m.wanted-from, 0) / step // a clock that was set may say that it was due long before
		steps[n] = append(steps[n], m.got-m.wanted)
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
