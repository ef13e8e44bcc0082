package checker

import (
	"slices"
	"time"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// vanished: each occurrence has a run, or the schedule says why not; and what a trigger made
// is there.
func vanished(s *schedule) {
	if !s.Audited || len(s.puts) == 0 {
		return
	}
	if s.found == nil || s.found.Standing == nil {
		if s.puts[0].did() {
			s.offend(verdict.Vanished, "the schedule is gone")
		}
		return
	}
	if s.found.Standing.Cut {
		s.tooFew()
	} else {
		s.withoutReason()
	}
	s.triggered()
	s.over()
}

// withoutReason looks at each occurrence.
func (s *schedule) withoutReason() {
	n, first := 0, int64(0)
	for _, at := range s.named {
		if _, skipped := s.reasons[at]; !s.certain[at] || skipped || s.hasRun(at) || !s.long(at) {
			continue
		}
		if n++; n == 1 {
			first = at
		}
	}
	if n > 0 {
		s.offend(verdict.Vanished, "%d occurrences have neither a run nor a reason, the first that of %s", n, clockTime(first))
	}
}

// tooFew counts, where the schedule does not remember everything.
func (s *schedule) tooFew() {
	must, decided := 0, s.found.Standing.Made+int64(s.found.Standing.Waiting)
	for at := range s.certain {
		if s.long(at) {
			must++
		}
	}
	for _, n := range s.found.Standing.Skipped {
		decided += n
	}
	if decided < int64(must) {
		s.offend(verdict.Vanished, "of %d occurrences %d have a run or a reason", must, decided)
	}
}

// long reports whether an occurrence was long ago when the schedule was read, or the
// schedule is over.
func (s *schedule) long(at int64) bool {
	_, to := s.clock.Bounds(at)
	return s.found.State == ledger.RunFinished || s.found.Mono > to+s.stuckAfter*millisecond
}

// triggered: a trigger that was answered with a run made it.
func (s *schedule) triggered() {
	known := map[string]bool{}
	for _, run := range s.runs {
		known[run.id] = true
	}
	for _, p := range s.found.Standing.Past {
		known[p.ID] = true
	}
	for _, o := range s.triggers {
		if o.result == ledger.OK && o.answer.ID != "" && !known[o.answer.ID] && !s.found.Standing.Cut {
			s.offend(verdict.Vanished, "the run %s of a trigger is nowhere", o.answer.ID)
			return
		}
	}
}

// over: a schedule without an occurrence to come comes to its end, once its runs have. One that was
// made by a clock which was set back since may be due much later.
func (s *schedule) over() {
	last := int64(0)
	for _, put := range s.puts {
		if put.may() {
			last = max(last, put.Timetable.ToMS)
		}
	}
	if s.clock.WasSet() && slices.ContainsFunc(s.runs, (*story).isToCome) {
		return
	}
	if _, to := s.clock.Bounds(last); s.found.State != ledger.RunFinished && s.found.Mono > to+s.stuckAfter*millisecond {
		s.offend(verdict.Stuck, "%s at the end, %d ms after its last occurrence", s.found.State, (s.found.Mono-to)/millisecond)
	}
}

// clockTime is an instant of a timetable, for people.
func clockTime(ms int64) string { return time.UnixMilli(ms).UTC().Format("15:04:05.000") }
