package checker

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

// moment is a first delivery, or an accepted enqueue: what was waited for since
// wanted came at got.
type moment struct{ wanted, got int64 }

// phases cuts the run at its faults. They come with the first deliveries.
func (h *History) phases() (phases []Phase, served []moment) {
	spans := h.spans()
	var stored []moment
	late := make([]*hdrhistogram.Histogram, len(spans))
	for i := range late {
		late[i] = lateness.New()
	}
	for _, s := range h.stories {
		if o := s.stored(); o != nil && !s.made() {
			stored = append(stored, moment{o.Mono, o.to})
		}
		due, known := s.latestDue()
		if t := h.topics[s.topic]; t != nil && t.Special() {
			continue // made to wait
		}
		if !known || len(s.deliveries) == 0 {
			continue
		}
		first := s.deliveries[0].Event
		by := max(h.clock.Late(first, due), 0)
		served = append(served, moment{first.Mono - by, first.Mono})
		if i := phaseOf(spans, first.Mono-by, first.Mono); i >= 0 {
			_ = late[i].RecordValue(min(by/1000, lateness.Ceiling)) // in range
		}
	}
	phases = make([]Phase, len(spans))
	for i, s := range spans {
		phases[i] = Phase{
			Name: s.name, Seconds: math.Round(float64(s.to-s.from)/1e6) / 1e3, Tasks: int(late[i].TotalCount()),
			LateMS: lateness.Of(late[i]),
		}
	}
	gaps(spans, served, func(i int, ms float64) { phases[i].NoDeliveryMS = max(phases[i].NoDeliveryMS, ms) })
	gaps(spans, stored, func(i int, ms float64) { phases[i].NoEnqueueMS = max(phases[i].NoEnqueueMS, ms) })
	return phases, served
}

// gaps tells the times in which somebody waited and nobody was served.
func gaps(spans []span, all []moment, tell func(phase int, ms float64)) {
	slices.SortFunc(all, func(a, b moment) int { return cmp.Compare(a.got, b.got) })
	// first[i] is the earliest wish of all that are served at i or later.
	first := make([]int64, len(all))
	earliest := int64(never)
	for i := len(all) - 1; i >= 0; i-- {
		earliest = min(earliest, all[i].wanted)
		first[i] = earliest
	}
	for i, m := range all {
		since := first[i]
		if i > 0 {
			since = max(since, all[i-1].got)
		}
		if p := phaseOf(spans, since, m.got); p >= 0 && m.got > since {
			tell(p, milliseconds(time.Duration(m.got-since)))
		}
	}
}
