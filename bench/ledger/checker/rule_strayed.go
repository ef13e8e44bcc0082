package checker

import (
	"slices"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// strayed: what has a run was named by a timetable, was not paused, and is made of what the
// schedule was put with last.
func strayed(s *schedule) {
	for _, run := range s.runs {
		if s.others[run.id] || run.loose() {
			continue
		}
		at := run.occurrence
		switch {
		case !slices.Contains(s.named, at):
			s.offend(verdict.Strayed, "a run was made of %s, which no timetable names that counted", clockTime(at))
			return
		case s.wasPaused(at):
			s.offend(verdict.Strayed, "a run was made of %s, when the schedule was paused", clockTime(at))
			return
		case s.outdated(run):
			s.offend(verdict.Strayed, "the run of %s is made of what the schedule was before an edit", clockTime(at))
			return
		}
	}
}

// wasPaused reports whether the schedule was paused at an occurrence for certain, and long
// enough before for no worker to have it in hand.
func (s *schedule) wasPaused(at int64) bool {
	from, to := s.clock.Bounds(at)
	for i, o := range s.turns {
		if o.Op != ledger.PauseSchedule || !o.did() || from <= o.to+heldAhead*millisecond {
			continue
		}
		resumed := slices.ContainsFunc(s.turns[i+1:], func(later *op) bool {
			return later.Op == ledger.ResumeSchedule && later.may() && later.Mono <= to
		})
		if !resumed {
			return true
		}
	}
	return false
}

// outdated reports whether a run has the payload of a put after which another one counted.
func (s *schedule) outdated(run *story) bool {
	from, _ := s.clock.Bounds(run.occurrence)
	sum := run.enqueues[0].Sum
	last := slices.IndexFunc(s.puts, func(o *op) bool { return o.Sum == sum })
	for i := range s.puts {
		if s.puts[i].Sum == sum {
			last = i
		}
	}
	return slices.ContainsFunc(s.puts[last+1:], func(later *op) bool {
		return later.did() && later.Sum != sum && from > later.to+heldAhead*millisecond
	})
}
