package timetable

import (
	"strings"
	"time"

	"github.com/netresearch/go-cron"
)

// searchYears is how far ahead the next match of an expression is looked for: a
// 29 February that is a Sunday may be 40 years away.
const searchYears = 40

var parser = cron.MustNewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow |
	cron.Descriptor | cron.Extended | cron.DowOrDom | cron.Hash).WithMaxSearchYears(searchYears)

// starBit is how the library marks a day field that the other one is intersected with.
const starBit = 1 << 63

// matcher names the wall times of an expression, of which zones are no part.
type matcher struct {
	spec  *cron.SpecSchedule
	fixed bool // no field of the time of day begins with *
	zone  *time.Location
}

// newMatcher checks an expression and has the library read what is left of it: numbers. H stands
// for numbers that follow from name.
func newMatcher(text, name string, zone *time.Location, field string) (*matcher, error) {
	if hint := otherDialect(text); hint != nil {
		return nil, hint.fault(field)
	}
	e, err := parse(text, name)
	if err != nil {
		return nil, fault(BadCron, field, "%v", err)
	}
	schedule, err := parser.Parse(e.text)
	if err != nil {
		return nil, fault(BadCron, field, "%v", err)
	}
	spec, ok := schedule.(*cron.SpecSchedule)
	if !ok {
		return nil, fault(BadCron, field, "%q is an interval, which is an entry of its own", text)
	}
	// As in Debian's cron: where one of the day fields begins with *, a day is in both of them.
	if e.star[dayOfMonth] {
		spec.Dom |= starBit
	}
	if e.star[dayOfWeek] {
		spec.Dow |= starBit
	}
	return &matcher{spec: spec, fixed: !e.star[second] && !e.star[minute] && !e.star[hour], zone: zone}, nil
}

// newLegacyMatcher reads an expression as schedules of before were read, which goes on for those that are
// stored: the library's rules for H and for the day fields, and the hour alone tells what is fixed.
func newLegacyMatcher(text, name string, zone *time.Location, field string) (*matcher, error) {
	fields := strings.Fields(text)
	schedule, err := parser.ParseWithHashKey(strings.Join(fields, " "), name)
	if err != nil {
		return nil, fault(BadCron, field, "%v", err)
	}
	spec, ok := schedule.(*cron.SpecSchedule)
	if !ok {
		return nil, fault(BadCron, field, "%q is an interval, which is an entry of its own", text)
	}
	return &matcher{spec: spec, fixed: !anyHour(fields), zone: zone}, nil
}

func anyHour(fields []string) bool {
	if len(fields) == 1 {
		return fields[0] == "@hourly"
	}
	return strings.HasPrefix(fields[len(fields)-4], "*")
}

// next returns the first occurrence after t.
func (m *matcher) next(t time.Time) (time.Time, bool) {
	if m.fixed {
		return m.nextFixed(t)
	}
	return m.nextElapsed(t)
}

// nextFixed takes each wall time once.
func (m *matcher) nextFixed(t time.Time) (time.Time, bool) {
	for w := firstWall(t, m.zone); ; {
		w = m.spec.Next(w)
		if w.IsZero() {
			return time.Time{}, false
		}
		if at, gap := firstInstant(w, m.zone); gap <= longGap && at.After(t) {
			return at, true
		}
	}
}

// nextElapsed takes every instant whose wall time matches, stretch by stretch. A match that is far away is
// gone to at once: what lies between has a wall time that does not match, but for a fold that repeats some of
// before t.
func (m *matcher) nextElapsed(t time.Time) (time.Time, bool) {
	for s := stretchAt(t, m.zone); ; {
		w := m.spec.Next(s.wall(t))
		if w.IsZero() {
			return time.Time{}, false
		}
		if at := s.instant(w); s.to.IsZero() || at.Before(s.to) {
			return at, true
		}
		from := s.to
		if near := w.Add(-farthest); from.After(t.Add(2*farthest)) && near.After(from) {
			from = near
		}
		t, s = from.Add(-1), stretchAt(from, m.zone)
	}
}
