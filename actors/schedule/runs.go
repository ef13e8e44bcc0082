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
		s.Open = slices.DeleteFunc(s.Open, func(r Run) bool { return r.At <= now })
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

// requeued opens a run that had failed, if it is remembered.
func (s *Schedule) requeued(id string) {
	i := slices.IndexFunc(s.History, func(h Past) bool { return h.Outcome == Failed && s.ID(h.Occurrence) == id })
	if i < 0 {
		return
	}
	h := s.History[i]
	s.History = slices.Delete(s.History, i, i+1)
	s.Totals[Failed]--
	s.Failures = max(s.Failures-1, 0)
	s.Open = append(s.Open, Run{Occurrence: h.Occurrence, Due: h.Due, Begun: true, Flow: h.Flow})
}
