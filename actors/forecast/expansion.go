package forecast

import (
	"slices"
	"time"

	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/timetable"
)

// Expansion is a schedule of which the occurrences of a forecast are named.
type Expansion struct {
	Schedule   *schedule.Schedule
	Table      *timetable.Timetable
	Excluded   func(time.Time) bool // by calendars; nil: nothing
	Now        store.Millis
	Steps      int     // occurrences that are named at most; what is behind them follows at the same rate
	Recipients int64   // of its audience
	Weight     float64 // how many schedules it stands for
	LaterOnly  bool    // its next occurrence is in the forecast
}

// Expand adds the occurrences of a schedule, and returns how many were named.
func (f *Forecast) Expand(e *Expansion) (steps int) {
	x := expander{Forecast: f, Expansion: e, left: e.Schedule.MaxRuns - e.Schedule.Made}
	if e.Schedule.Phase == schedule.Active {
		x.run()
	}
	return x.steps
}

// expander is one Expand.
type expander struct {
	*Forecast
	*Expansion
	steps int
	named float64 // occurrences that were added
	left  int64   // of MaxRuns
}

func (x *expander) run() {
	x.behind()
	after := x.begin()
	first := after
	for x.steps < x.Steps && (x.Schedule.MaxRuns == 0 || x.left > 0) {
		next, ok := x.Table.Next(after.Time())
		at := store.Millis(next.UnixMilli())
		if !ok || at >= x.To() {
			return
		}
		x.steps++
		x.occurrence(at, next)
		if after = at; x.steps == 1 {
			after = x.skipTo(at)
		}
	}
	if x.steps == x.Steps && x.Schedule.MaxRuns == 0 {
		x.goOn(first, after)
	}
}

// behind adds the runs that are late: those that wait for the end of another, and of backfills
// what is left. They come now, as far as is known.
func (x *expander) behind() {
	n := int64(len(x.Schedule.Waiting))
	for _, b := range x.Schedule.Backfills {
		n += max(0, b.Total-b.Made)
	}
	if x.Schedule.Audience != nil {
		x.Forecast.Recipients.spread(x.Range, x.Now, x.Now.Add(x.window()), x.Weight*float64(n*x.Expansion.Recipients))
		return
	}
	x.Later.add(x.Range, x.Now, x.tasks(n))
}

// begin is the moment behind which occurrences are not decided.
func (x *expander) begin() store.Millis {
	s := x.Schedule
	if !x.Table.FromEnd() {
		return max(s.Decided, x.Now-1)
	}
	begin := s.Decided
	for _, r := range s.Open {
		if r.Origin == schedule.ByTimetable {
			begin = max(r.Due, x.Now) // it ends then, as far as is known
		}
	}
	return begin
}

// skipTo passes over occurrences before the range. They are not counted, which only a
// schedule with a bound of its runs needs.
func (x *expander) skipTo(at store.Millis) store.Millis {
	if x.Schedule.MaxRuns > 0 || x.Table.FromEnd() {
		return at
	}
	return max(at, x.From.Add(-x.Schedule.Jitter-x.window())-1)
}

func (x *expander) occurrence(at store.Millis, next time.Time) {
	s := x.Schedule
	if slices.Contains(s.Early, at) || x.Excluded != nil && x.Excluded(next) {
		return
	}
	x.left--
	due := store.Millis(timetable.Jitter(s.Life, next, s.Jitter).UnixMilli())
	switch {
	case s.Audience != nil:
		x.Forecast.Recipients.spread(x.Range, due, due.Add(x.window()), x.Weight*float64(x.Expansion.Recipients))
	case x.LaterOnly && x.steps == 1: // the store has counted it, or one task of it
		x.Later.add(x.Range, due, x.tasks(1)-x.Weight)
	case x.LaterOnly || x.named > 0:
		x.Later.add(x.Range, due, x.tasks(1))
	default:
		x.Next.add(x.Range, due, x.tasks(1))
	}
	x.named++
}

// tasks is how many begin n runs, by weight: a workflow begins with some, and makes the others as
// those end.
func (x *expander) tasks(n int64) float64 { return x.Weight * float64(n*x.Schedule.FlowTasks()) }

// window is how long a run of the audience lasts.
func (x *expander) window() time.Duration {
	a := x.Schedule.Audience
	switch {
	case a == nil:
		return 0
	case x.Expansion.Recipients < a.SpreadFrom:
		return clocks(x.Schedule)
	}
	return a.Window + clocks(x.Schedule)
}

// clocks is how long a run of a schedule goes round the earth, where each recipient's clock counts.
func clocks(s *schedule.Schedule) time.Duration {
	if s.Timetable.Zone == timetable.Recipient {
		return timetable.Spread
	}
	return 0
}

// goOn adds what is behind the occurrences that were named, at the rate that they had.
func (x *expander) goOn(first, last store.Millis) {
	x.Inexact = true
	to := x.To()
	if end := x.Schedule.Timetable.End; !end.IsZero() {
		to = min(to, store.Millis(end.UnixMilli()))
	}
	if last <= first || to <= last {
		return
	}
	n := x.Weight * x.named / float64(last-first) * float64(to-last)
	if x.Schedule.Audience != nil {
		x.Forecast.Recipients.spread(x.Range, last, to, n*float64(x.Expansion.Recipients))
		return
	}
	x.Later.spread(x.Range, last, to, n*float64(x.Schedule.FlowTasks()))
}

// AddWalk adds the tasks that the walk of a run has yet to make, evenly over what is left of
// its window. Weight is how many walks it stands for.
func (f *Forecast) AddWalk(w *audience.Walk, recipients int64, now store.Millis, weight float64) {
	from, to, share := w.Left()
	f.Recipients.spread(f.Range, max(from, now), max(to, now), weight*share*float64(recipients))
}
