package schedule

import (
	"iter"
	"slices"

	"github.com/ddq-io/ddq/store"
)

// Foreseen is an occurrence to come, and what is to become of it as far as is known.
type Foreseen struct {
	At      store.Millis
	Due     store.Millis // of its run
	Skipped Reason       // 0: a run is made, or is made already
}

// foresight is what a step would decide.
type foresight struct{ *step }

// Coming names the occurrences behind a moment, in order. It says of each what a step would decide if runs
// ended before the next occurrence, the topic took all tasks, and nobody edited anything.
func (s *Schedule) Coming(env Env, from store.Millis) iter.Seq[Foreseen] {
	return func(yield func(Foreseen) bool) {
		p := foresight{&step{Env: env, s: s}}
		left, passed := s.runsLeft(), 0
		for at, ok := p.next(p.comingFrom(from)); ok; at, ok = p.next(at) {
			f := p.foresee(at)
			if counts := at > s.Decided && f.Skipped == 0 && !slices.Contains(s.Early, at); counts && s.MaxRuns > 0 {
				if left <= 0 {
					return
				}
				left--
			}
			if at <= from && !p.Table.FromEnd() {
				if passed++; passed < maxLookedAt {
					continue
				}
				return
			}
			if !yield(f) {
				return
			}
		}
	}
}

// comingFrom is behind what the first occurrence is that has to be looked at: with a bound of runs, those
// before a moment count as well.
func (p foresight) comingFrom(from store.Millis) store.Millis {
	switch {
	case p.Table.FromEnd() && from <= p.Now && !p.waitsForEnd():
		return p.s.Decided
	case p.s.MaxRuns > 0 && !p.Table.FromEnd():
		return min(from, max(p.s.Decided, p.Now))
	}
	return from
}

func (p foresight) foresee(at store.Millis) Foreseen {
	o := Occurrence{At: at, Origin: ByTimetable}
	f := Foreseen{At: at, Due: p.due(o)}
	if i := slices.IndexFunc(p.s.Open, func(r Run) bool { return r.Occurrence == o }); i >= 0 {
		f.Due = p.s.Open[i].Due // whatever calendars say by now
		return f
	}
	switch {
	case p.s.Phase == Paused, p.s.Paused.has(at):
		f.Skipped = WasPaused
	case p.excludes(at):
		f.Skipped = Excluded
	}
	return f
}
