package pulse

import "github.com/ddq-io/ddq/store"

// Report is what has happened to the tasks of a topic, as one node counted it, or all of them.
type Report struct {
	Minute, Hour Window
}

// NewReport is that of a topic to which nothing has happened.
func NewReport(now store.Millis) Report {
	return Report{newWindow(lastMinute, now), newWindow(lastHour, now)}
}

// ReportFrom is one whose windows begin at these times.
func ReportFrom(minute, hour store.Millis) Report {
	return Report{newWindow(lastMinute, minute+lastMinute.length()), newWindow(lastHour, hour+lastHour.length())}
}

// Merge adds what another node reports.
func (r *Report) Merge(o *Report) {
	r.Minute.merge(&o.Minute)
	r.Hour.merge(&o.Hour)
}

// Empty reports whether nothing has happened.
func (r *Report) Empty() bool { return r.Minute.empty() && r.Hour.empty() }

// Window is what has happened in the steps of a span that are over, and how late deliveries were, also
// those of the present step.
type Window struct {
	From   store.Millis    // the first step begins
	Step   store.Millis    // how long each is
	Steps  int             // how many
	Counts [Events][]int64 // by step; nil: none
	Latest []int64         // the greatest lateness of the deliveries of each step, in ms; nil: none was late
	Late   *Distribution   // nil: nothing was delivered
	Max    int64           // the greatest lateness of all deliveries, in ms
}

func newWindow(s span, now store.Millis) Window {
	return Window{From: (now/s.step - store.Millis(s.steps)) * s.step, Step: s.step, Steps: int(s.steps)}
}

// Rate is how many events a second there were.
func (w *Window) Rate(e Event) float64 {
	sum := int64(0)
	for _, n := range w.Counts[e] {
		sum += n
	}
	return float64(sum) * 1000 / float64(w.Step*store.Millis(w.Steps))
}

// LateAt is the lateness that a percentile of the deliveries did not exceed, in ms: up to 6 % too
// much, and never above Max.
func (w *Window) LateAt(percentile float64) int64 {
	if w.Late == nil {
		return 0
	}
	return min(w.Late.ValueAtPercentile(percentile), w.Max)
}

func (w *Window) add(e Event, step int, n int64) {
	if n == 0 {
		return
	}
	if w.Counts[e] == nil {
		w.Counts[e] = make([]int64, w.Steps)
	}
	w.Counts[e][step] += n
}

func (w *Window) later(step int, ms int64) {
	if ms == 0 {
		return
	}
	if w.Latest == nil {
		w.Latest = make([]int64, w.Steps)
	}
	w.Latest[step], w.Max = max(w.Latest[step], ms), max(w.Max, ms)
}

// merge adds a window of the same span. Another node may have begun its present step already, or not
// yet: steps are told apart by when they begin, and those of one side only are left out.
func (w *Window) merge(o *Window) {
	shift := int((o.From - w.From) / w.Step)
	w.Max = max(w.Max, o.Max)
	for e, counts := range o.Counts {
		for i, n := range counts {
			if at := i + shift; at >= 0 && at < w.Steps {
				w.add(Event(e), at, n)
			}
		}
	}
	for i, ms := range o.Latest {
		if at := i + shift; at >= 0 && at < w.Steps {
			w.later(at, ms)
		}
	}
	if o.Late == nil {
		return
	}
	if w.Late == nil {
		w.Late = new(Distribution)
		*w.Late = NewDistribution()
	}
	w.Late.Merge(o.Late.PackedHistogram)
}

func (w *Window) empty() bool {
	for _, counts := range w.Counts {
		if counts != nil {
			return false
		}
	}
	return w.Latest == nil && w.Late == nil
}
