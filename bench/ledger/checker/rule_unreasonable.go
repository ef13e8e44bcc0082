package checker

import (
	"slices"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// unreasonable: an occurrence without a run has none for a reason that was so.
func unreasonable(s *schedule) {
	for _, at := range s.named {
		r, skipped := s.reasons[at]
		if !skipped || r.vague || s.undoneAt(at) {
			continue
		}
		if why := s.doubt(at, r.why); why != "" {
			s.offend(verdict.Unreasonable, "the occurrence of %s was skipped as %s, %s", clockTime(at), r.why, why)
			return
		}
	}
	for _, o := range s.triggers {
		if o.result == ledger.Refused && o.answer.Reason == ledger.RunOpen && !s.mayBeOpen(never, o.Mono, o.to) {
			s.offend(verdict.Unreasonable, "a trigger was refused because of a run that is open, and none was")
			return
		}
	}
}

// doubt says what speaks against a reason; empty: nothing for certain.
func (s *schedule) doubt(at int64, why string) string {
	from, to := s.clock.Bounds(at)
	by := s.decidedBy(at)
	switch why {
	case ledger.SkipOverlap, ledger.SkipFull:
		if !s.mayBeOpen(at, from, by) {
			return "and no run was open"
		}
	case ledger.SkipReplaced:
		if s.cancelsOthers() && s.dueTogether(at, by) {
			return ""
		}
		if later, ok := s.nextNamed(at); ok && len(s.triggers) == 0 {
			from, _ = s.clock.Bounds(later)
		}
		if !s.mayBeOpen(at, from, by) {
			return "and no run was open when the next one came"
		}
	case ledger.SkipMissed:
		return s.doubtMissed(at, by)
	case ledger.SkipPaused:
		if !s.mayBePaused(from, to) {
			return "and nobody had paused it"
		}
	case ledger.SkipRefused:
		if !slices.ContainsFunc(s.faults, func(f verdict.Fault) bool { return f.From < by && f.To > from }) {
			return "and nothing was wrong"
		}
	default:
		return "which nobody asked for"
	}
	return ""
}

// cancelsOthers reports whether the runs of the schedule may have cancelled each other.
func (s *schedule) cancelsOthers() bool {
	return slices.ContainsFunc(s.puts, func(o *op) bool { return o.may() && o.Timetable.Overlap == ledger.CancelOther })
}

// dueTogether reports whether the next occurrence, or a trigger, may have come before one was
// decided: of those that are decided at once the last takes the place of the others.
func (s *schedule) dueTogether(at, by int64) bool {
	later, ok := s.nextNamed(at)
	return len(s.triggers) > 0 || ok && s.clock.Reached(later) <= by
}

func (s *schedule) nextNamed(at int64) (int64, bool) {
	i, _ := slices.BinarySearch(s.named, at+1)
	if i == len(s.named) {
		return 0, false
	}
	return s.named[i], true
}

// doubtMissed asks whether so much time can have passed before an occurrence was decided, and
// whether the policy would have made it all the same. Of those put with several policies the
// one that speaks for the schedule counts.
func (s *schedule) doubtMissed(at, by int64) string {
	why := ""
	for i, put := range s.puts {
		if !put.may() || !put.Timetable.Names(at) || !s.mayName(i, at) {
			continue
		}
		late := at
		switch next, ok := put.Timetable.Next(at); {
		case put.Timetable.CatchUp == ledger.CatchUpAll:
			why = "and all were to be caught up with"
			continue
		case put.Timetable.CatchUp == ledger.CatchUpLast && !ok:
			why = "and the last one was to be caught up with"
			continue
		case put.Timetable.CatchUp == ledger.CatchUpLast:
			late = next
		}
		if s.clock.Reached(late+put.Timetable.GraceMS) <= by {
			return ""
		}
		why = "and it was decided within its grace"
	}
	return why
}

// mayBePaused reports whether the schedule may have been paused between two moments, or was
// paused soon after that: what nobody has decided by then is paused, too.
func (s *schedule) mayBePaused(from, to int64) bool {
	for i, o := range s.turns {
		if o.Op != ledger.PauseSchedule || !o.may() || s.decidedBefore(to, o.Mono) {
			continue
		}
		resumed := int64(never)
		for _, later := range s.turns[i+1:] {
			if later.Op == ledger.ResumeSchedule && later.did() {
				resumed = later.to
				break
			}
		}
		if from <= resumed {
			return true
		}
	}
	return false
}

// decidedBefore reports whether what was due at one moment was decided by another: there was
// time enough in between in which nothing was broken.
func (s *schedule) decidedBefore(due, by int64) bool {
	end := due + quick
	for _, f := range s.faults {
		if f.From < end && f.To > due {
			if f.To == never {
				return false
			}
			end = max(end, f.To+effective.Nanoseconds()+quick)
		}
	}
	return end < by
}

// quick is how long an occurrence may wait to be decided while nothing is broken, in ns. The
// machine may be busy.
const quick = 5_000 * millisecond
