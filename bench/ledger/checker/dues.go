package checker

import (
	"slices"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/clock"
)

// earliestDue is the earliest time, in store milliseconds, at which the task may
// ever have been due for its first attempt; 0 when it was to be delivered at once.
func (s *story) earliestDue(c *clock.Clock) int64 {
	due := int64(never)
	for _, o := range s.enqueues {
		if o.result == ledger.Refused {
			continue
		}
		d := o.Due
		if o.answer != nil && o.did() && o.answer.Due != 0 {
			d = o.answer.Due
			if o.answer.Result == ledger.Already { // the task may have been tried since it was stored
				d = min(d, o.Due)
			}
		}
		due = min(due, d)
	}
	if due == never {
		return 0
	}
	for i, o := range s.moves {
		switch alone := !slices.ContainsFunc(s.moves[:i], func(before *op) bool { return before.to >= o.Mono }); {
		case o.result == ledger.Refused:
		case o.did() && alone && c.Upper(s.begin(), o.answer) < due:
			due = o.answer.Due // nobody could hold it before
		case o.answer != nil && o.did():
			due = min(due, o.answer.Due)
		default:
			due = min(due, o.Due)
		}
	}
	return due
}

// latestDue is the due time that lateness is measured from: the last that was agreed
// on. False means that nobody knows it.
func (s *story) latestDue() (int64, bool) {
	o := s.stored()
	if o == nil || o.answer.Due == 0 || s.creations() > 1 {
		return 0, false
	}
	due := o.answer.Due
	for _, m := range s.moves {
		switch {
		case m.result == ledger.Unknown:
			return 0, false
		case m.did():
			due = m.answer.Due
		}
	}
	return due, true
}

// storedDue is when the task was due as the server said that stored it, and by when that
// was; never for one that nobody said was stored.
func (s *story) storedDue() (due, to int64) {
	for _, o := range s.enqueues {
		if o.result == ledger.OK && o.answer != nil {
			return o.answer.Due, o.to
		}
	}
	return 0, never
}
