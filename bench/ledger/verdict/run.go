package verdict

import (
	"math"
	"time"
)

// Run is the times of a run, in nanoseconds of the monotonic clock.
type Run struct {
	From, To int64
	Faults   []Fault  // in order
	Served   []Moment // first deliveries, of tasks that nothing but ddq made wait
	Stored   []Moment // accepted enqueues
}

// Fault is the time of a fault. It may reach beyond the run.
type Fault struct {
	Name     string
	From, To int64
}

// Moment is a first delivery, or an accepted enqueue: what was waited for since
// Wanted came at Got.
type Moment struct{ Wanted, Got int64 }

// Measure adds what the times of a run tell: phases, and what the chart shows.
func (v *Verdict) Measure(r *Run) {
	v.Phases, v.Faults, v.Series = r.phases(), r.bands(), r.series()
}

// span is a part of a run.
type span struct {
	name     string
	from, to int64
	fault    bool
}

// spans are the phases of the whole run, in order.
func (r *Run) spans() []span {
	var spans []span
	at := r.From
	name := "calm"
	cut := func(to int64) {
		if name != "calm" && to > at+Settling.Nanoseconds() {
			spans = append(spans, span{name: name, from: at, to: at + Settling.Nanoseconds()})
			at, name = at+Settling.Nanoseconds(), "calm"
		}
		if to > at {
			spans = append(spans, span{name: name, from: at, to: to})
		}
	}
	for _, f := range r.Faults {
		if f.From < at {
			continue // within another one
		}
		cut(f.From)
		end := min(f.To, r.To)
		spans = append(spans, span{f.Name, f.From, end, true})
		at, name = end, "after "+f.Name
	}
	cut(r.To + 1)
	return spans
}

// Settling is how long after a fault its aftermath is told apart from calm.
const Settling = 30 * time.Second

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

// milliseconds is d in milliseconds, to the microsecond.
func milliseconds(d time.Duration) float64 { return math.Round(float64(d)/1e3) / 1e3 }
