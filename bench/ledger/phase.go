package ledger

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// settling is how long after a fault its aftermath is told apart from calm.
const settling = 30 * time.Second

// Phase is a part of a run: calm, during a fault, or after one. Times are ms. What
// began before a fault and ended in it, or later, counts in the fault.
type Phase struct {
	Name    string     `json:"name"`
	Seconds float64    `json:"seconds"`
	Tasks   int        `json:"tasks"` // that were delivered
	LateMS  Percentile `json:"late_ms"`
	// NoDeliveryMS is the longest time in which a task waited that was due, and none
	// was delivered; NoEnqueueMS that in which an enqueue was asked for, and none
	// accepted.
	NoDeliveryMS float64 `json:"no_delivery_ms"`
	NoEnqueueMS  float64 `json:"no_enqueue_ms"`
}

// moment is a first delivery, or an accepted enqueue: what was waited for since
// wanted came at got.
type moment struct{ wanted, got int64 }

// phases cuts the run at its faults.
func (c *checker) phases() []Phase {
	spans := c.h.spans()
	var served, stored []moment
	late := make([]*hdrhistogram.Histogram, len(spans))
	for i := range late {
		late[i] = NewHistogram()
	}
	for _, s := range c.h.stories {
		if o := s.stored(); o != nil {
			stored = append(stored, moment{o.Mono, o.to})
		}
		due, known := s.latestDue()
		if t := c.h.topics[s.topic]; t != nil && t.special() {
			continue // made to wait
		}
		if !known || len(s.deliveries) == 0 {
			continue
		}
		first := s.deliveries[0].Event
		by := max(c.h.clock.late(first, due), 0)
		served = append(served, moment{first.Mono - by, first.Mono})
		if i := phaseOf(spans, first.Mono-by, first.Mono); i >= 0 {
			_ = late[i].RecordValue(min(by/1000, LatenessCeiling)) // in range
		}
	}
	c.draw(served)
	phases := make([]Phase, len(spans))
	for i, s := range spans {
		phases[i] = Phase{
			Name: s.name, Seconds: math.Round(float64(s.to-s.from)/1e6) / 1e3, Tasks: int(late[i].TotalCount()),
			LateMS: Percentiles(late[i]),
		}
	}
	gaps(spans, served, func(i int, ms float64) { phases[i].NoDeliveryMS = max(phases[i].NoDeliveryMS, ms) })
	gaps(spans, stored, func(i int, ms float64) { phases[i].NoEnqueueMS = max(phases[i].NoEnqueueMS, ms) })
	return phases
}

// spans are the phases of the whole run, in order.
func (h *History) spans() []span {
	var spans []span
	at := h.from
	name := "calm"
	cut := func(to int64) {
		if name != "calm" && to > at+settling.Nanoseconds() {
			spans = append(spans, span{name: name, from: at, to: at + settling.Nanoseconds()})
			at, name = at+settling.Nanoseconds(), "calm"
		}
		if to > at {
			spans = append(spans, span{name: name, from: at, to: to})
		}
	}
	for _, f := range h.faults {
		if f.from < at {
			continue // within another one
		}
		cut(f.from)
		end := min(f.to, h.to)
		spans = append(spans, span{f.name, f.from, end, true})
		at, name = end, "after "+f.name
	}
	cut(h.to + 1)
	return spans
}

// phaseOf is the index of the phase that a wait belongs to: a fault that it lived
// through, else the one in which it began. -1 for none.
func phaseOf(spans []span, from, to int64) int {
	began := -1
	for i, s := range spans {
		if to < s.from || from >= s.to {
			continue
		}
		if s.fault {
			return i
		}
		if began < 0 {
			began = i
		}
	}
	return began
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

// step is how much time a point of the chart stands for.
const step = int64(200 * time.Millisecond)

// draw fills in what the chart needs.
func (c *checker) draw(served []moment) {
	v, h := c.verdict, c.h
	v.Began = h.wall
	seconds := func(mono int64) float64 { return float64(mono-h.from) / 1e9 }
	for _, f := range h.faults {
		v.Faults = append(v.Faults, Band{seconds(f.from), seconds(min(f.to, h.to))})
	}
	steps := map[int64][]int64{} // lateness in ns
	for _, m := range served {
		n := max(m.wanted-h.from, 0) / step // a clock that was set may say that it was due long before
		steps[n] = append(steps[n], m.got-m.wanted)
	}
	for _, n := range slices.Sorted(maps.Keys(steps)) {
		late := steps[n]
		slices.Sort(late)
		v.Series = append(v.Series, Point{
			At: float64(n*step) / 1e9, P50: milliseconds(time.Duration(late[len(late)/2])), Max: milliseconds(time.Duration(late[len(late)-1])),
		})
	}
}
