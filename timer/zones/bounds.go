package zones

import "time"

// Bounds returns the span around an instant in which its zone keeps its offset from UTC: from one on, and up
// to another; the zero time where there is no bound. The span next to it may have the same offset.
//
// It is ZoneBounds but for the last day of a leap year that a zone's database has only a rule for, where that
// has an end that is not after t, go.dev/issue/81583, and who goes on from there stays there for ever.
func Bounds(t time.Time) (from, to time.Time) {
	from, to = t.ZoneBounds()
	if !to.IsZero() && !to.After(t) {
		to = time.Date(t.UTC().Year()+1, time.January, 1, 0, 0, 0, 0, time.UTC).In(t.Location())
	}
	return from, to
}
