package schedule

import (
	"slices"

	"github.com/ddq-io/ddq/store"
)

// What a schedule knows of its runs, kept without a decision and without an effect. What
// follows from it is decided by step.

// passUntracked forgets the runs of a schedule that is not told of their ends, once they
// cannot be taken back any more.
func (s *Schedule) passUntracked(now store.Millis) {
	if s.Untracked {
		s.Open = slices.DeleteFunc(s.Open, func(r Run) bool { return max(r.At, r.Due) <= now })
	}
}

// recalled reports whether it was a step that took this run back: that is told like any
// other end, perhaps when the run has been made anew.
func (s *Schedule) recalled(id string) bool {
	i := slices.IndexFunc(s.Recalled, func(at store.Millis) bool { return s.ID(Occurrence{At: at, Origin: ByTimetable}) == id })
	if i < 0 {
		return false
	}
	s.Recalled = slices.Delete(s.Recalled, i, i+1)
	return true
}

// mourn remembers a run that may be open again, for as long as it is one of the last.
func (s *Schedule) mourn(h Past) {
	h.Started, h.Ended = 0, h.Due
	s.Dead = lastOf(append(s.Dead, h), MaxDead)
}

// requeued opens a run that had ended, if it is remembered: its dead letter is pending again, or its
// workflow goes on.
func (s *Schedule) requeued(id string) {
	is := func(h Past) bool { return h.Outcome != 0 && s.ID(h.Occurrence) == id }
	i, j := slices.IndexFunc(s.History, is), slices.IndexFunc(s.Dead, is)
	var h Past
	switch {
	case i >= 0:
		h = s.History[i]
	case j >= 0:
		h = s.Dead[j]
	default:
		return
	}
	s.History, s.Dead = slices.DeleteFunc(s.History, is), slices.DeleteFunc(s.Dead, is)
	s.Totals[h.Outcome]--
	if h.Outcome == Failed {
		s.Failures = max(s.Failures-1, 0)
	}
	s.Open = append(s.Open, Run{Occurrence: h.Occurrence, Due: h.Due, Begun: true, Flow: h.Flow})
}

// stays is the first of the open runs that a trigger does not take back; -1: there is none, or nobody tells.
func (s *Schedule) stays(now store.Millis) int {
	if s.Untracked {
		return -1
	}
	return slices.IndexFunc(s.Open, func(r Run) bool { return !r.canBeTakenBack(now, ahead) })
}

// isFull reports whether one more run can neither be open nor wait.
func (s *Schedule) isFull(overlap Overlap, now store.Millis) bool {
	switch overlap {
	case Allow:
		return !s.Untracked && len(s.Open) >= MaxOpen
	case BufferAll:
		return len(s.Waiting) >= MaxWaiting && s.stays(now) >= 0
	}
	return false
}
