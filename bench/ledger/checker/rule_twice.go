package checker

import (
	"slices"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// twice: an occurrence has one run, or a reason, and not both.
func twice(s *schedule) {
	for _, at := range s.named {
		if s.undoneAt(at) {
			continue
		}
		m := s.made[at]
		switch {
		case m == nil:
		case len(m.ids) > 1:
			s.offend(verdict.Doubled, "the occurrence of %s has the runs %s and %s", clockTime(at), m.ids[0], m.ids[1])
			return
		case s.skippedAt(at) && len(m.ids) > 0:
			s.offend(verdict.Doubled, "the occurrence of %s has the run %s, and was skipped as %s", clockTime(at), m.ids[0], s.reasons[at].why)
			return
		}
	}
	for _, run := range s.runs {
		if !run.loose() && run.begunAnew() {
			s.offend(verdict.Doubled, "the run %s of %s was made again", run.id, clockTime(run.occurrence))
			return
		}
	}
}

// skippedAt reports whether the schedule says itself that it skipped this very occurrence.
func (s *schedule) skippedAt(at int64) bool {
	return s.found != nil && s.found.Standing != nil && slices.ContainsFunc(s.found.Standing.Past, func(p ledger.Past) bool {
		return p.At == at && p.Skipped != "" && p.Origin == ledger.ByTimetable
	})
}

// begunAnew reports whether the task was made again when it was over: its attempts begin
// anew. A worker that was paused may tell of an attempt after a later one was acked: the
// store has both then.
func (s *story) begunAnew() bool {
	for _, o := range s.settles {
		if o.Op != ledger.Ack || !o.did() || o.settled == nil {
			continue
		}
		last := o.settled.Attempt
		if slices.ContainsFunc(s.deliveries, func(d *delivery) bool {
			return d.Mono > o.to && d.Attempt <= last && !(d.Attempt < last && s.kept(d.Attempt) && s.kept(last))
		}) {
			return true
		}
	}
	return false
}

// kept reports whether an attempt was in the store at the end.
func (s *story) kept(attempt int) bool {
	return s.found != nil && slices.ContainsFunc(s.found.History, func(a ledger.Attempt) bool { return a.Number == attempt })
}
