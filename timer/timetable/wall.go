package timetable

import (
	"time"

	"github.com/ddq-io/ddq/timer/zones"
)

// A wall time is a date and a time of day without a zone. It is kept in a
// time.Time whose location is UTC and means nothing.

// longGap is from where on a gap swallows the wall times in it: what was
// planned for a day that does not exist is not done on the next.
const longGap = 12 * time.Hour

// farthest is a bound of all offsets from UTC, also of the past.
const farthest = 16 * time.Hour

// stretch is a span of time in which a zone keeps its offset from UTC.
type stretch struct {
	from, to time.Time     // to is not part of it; zero: without a bound
	offset   time.Duration // wall time minus UTC
}

func stretchAt(t time.Time, zone *time.Location) stretch {
	t = t.In(zone)
	from, to := zones.Bounds(t)
	_, offset := t.Zone()
	return stretch{from: from, to: to, offset: time.Duration(offset) * time.Second}
}

// before returns the stretch that s follows on, which has a from.
func (s stretch) before(zone *time.Location) stretch {
	return stretchAt(s.from.Add(-1), zone)
}

// wall returns the wall time of t, an instant within s.
func (s stretch) wall(t time.Time) time.Time { return t.UTC().Add(s.offset) }

// instant returns when the wall time w is by the offset of s, within s or not.
func (s stretch) instant(w time.Time) time.Time { return w.Add(-s.offset) }

// Wall returns what people in a zone read off a clock at an instant: a date and a time of
// day, in UTC, which means nothing there.
func Wall(t time.Time, zone *time.Location) time.Time { return stretchAt(t, zone).wall(t) }

// Instant returns the first instant whose wall time in a zone is w, and the instant after
// the gap when w lies in one; false when that is because the zone left the day out.
func Instant(w time.Time, zone *time.Location) (time.Time, bool) {
	t, gap := firstInstant(w, zone)
	return t.UTC(), gap <= longGap
}

// firstInstant returns the first instant whose wall time in zone is w. When w
// lies in a gap, it returns the instant after the gap, and how long the gap is.
func firstInstant(w time.Time, zone *time.Location) (time.Time, time.Duration) {
	for s := stretchAt(w.Add(-farthest), zone); ; s = stretchAt(s.to, zone) {
		t := s.instant(w)
		if !s.to.IsZero() && !t.Before(s.to) {
			continue
		}
		if !s.from.IsZero() && t.Before(s.from) {
			return s.from, s.offset - s.before(zone).offset
		}
		return t, 0
	}
}

// firstWall returns a wall time such that the first instants of all later ones
// are after t, and those of all others are not.
func firstWall(t time.Time, zone *time.Location) time.Time {
	s := stretchAt(t, zone)
	w := s.wall(t)
	if s.from.IsZero() {
		return w
	}
	if again := s.before(zone).wall(s.from); w.Before(again) {
		return again.Add(-1) // t is within the second pass of a fold, whose wall times have all been
	}
	return w
}
