package verdict

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/ddq-io/ddq/bench/lateness"
)

// Phase is a part of a run: calm, during a fault, or after one. Times are ms. What
// began before a fault and ended in it, or later, counts in the fault.
type Phase struct {
	Name    string               `json:"name"`
	Seconds float64              `json:"seconds"`
	Tasks   int                  `json:"tasks"` // that were delivered
	LateMS  lateness.Percentiles `json:"late_ms"`
	// NoDeliveryMS is the longest time in which a task waited that was due, and none
	// was delivered; NoEnqueueMS that in which an enqueue was asked for, and none
	// accepted.
	NoDeliveryMS float64 `json:"no_delivery_ms"`
	NoEnqueueMS  float64 `json:"no_enqueue_ms"`
}

// phases cuts the run at its faults.
func (r *Run) phases() []Phase {
	spans := r.spans()
	late := make([]*hdrhistogram.Histogram, len(spans))
	for i := range late {
		late[i] = lateness.New()
	}
	for _, m := range r.Served {
		if i := phaseOf(spans, m.Wanted, m.Got); i >= 0 {
			_ = late[i].RecordValue(min((m.Got-m.Wanted)/1000, lateness.Ceiling)) // in range
		}
	}
	phases := make([]Phase, len(spans))
	for i, s := range spans {
		phases[i] = Phase{
			Name: s.name, Seconds: math.Round(float64(s.to-s.from)/1e6) / 1e3, Tasks: int(late[i].TotalCount()),
			LateMS: lateness.Of(late[i]),
		}
	}
	gaps(spans, r.Served, func(i int, ms float64) { phases[i].NoDeliveryMS = max(phases[i].NoDeliveryMS, ms) })
	gaps(spans, r.Stored, func(i int, ms float64) { phases[i].NoEnqueueMS = max(phases[i].NoEnqueueMS, ms) })
	return phases
}

// gaps tells the times in which somebody waited and nobody was served.
func gaps(spans []span, all []Moment, tell func(phase int, ms float64)) {
	slices.SortFunc(all, func(a, b Moment) int { return cmp.Compare(a.Got, b.Got) })
	// first[i] is the earliest wish of all that are served at i or later.
	first := make([]int64, len(all))
	earliest := int64(math.MaxInt64)
	for i := len(all) - 1; i >= 0; i-- {
		earliest = min(earliest, all[i].Wanted)
		first[i] = earliest
	}
	for i, m := range all {
		since := first[i]
		if i > 0 {
			since = max(since, all[i-1].Got)
		}
		if p := phaseOf(spans, since, m.Got); p >= 0 && m.Got > since {
			tell(p, milliseconds(time.Duration(m.Got-since)))
		}
	}
}
