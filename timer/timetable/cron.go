package timetable

import (
	"strings"
	"time"

	"github.com/netresearch/go-cron"
)

// searchYears is how far ahead the next match of an expression is looked for:
// 29 February may be eight years away, and its being a Sunday twelve.
const searchYears = 12

var parser = cron.MustNewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow |
	cron.Descriptor | cron.Extended | cron.DowOrDom | cron.Hash).WithMaxSearchYears(searchYears)

// matcher names the wall times of an expression, of which zones are no part.
type matcher struct {
	spec  *cron.SpecSchedule
	fixed bool // the hour field does not begin with *
	zone  *time.Location
}

// newMatcher parses an expression. H stands for numbers that follow from name.
func newMatcher(expression, name string, zone *time.Location, field string) (*matcher, error) {
	if strings.Contains(expression, "TZ=") {
		return nil, fault(BadCron, field, "a zone is not part of an expression")
	}
	fields := strings.Fields(expression)
	schedule, err := parser.ParseWithHashKey(strings.Join(fields, " "), name)
	if err != nil {
		return nil, badExpression(expression, name, err, field)
	}
	spec, ok := schedule.(*cron.SpecSchedule)
	if !ok {
		return nil, fault(BadCron, field, "%q is an interval, which is an entry of its own", expression)
	}
	if empty := emptyField(spec); empty != "" {
		return nil, fault(BadCron, field, "%s names nothing", empty)
	}
	return &matcher{spec: spec, fixed: !anyHour(fields), zone: zone}, nil
}

func anyHour(fields []string) bool {
	if len(fields) == 1 {
		return fields[0] == "@hourly"
	}
	return strings.HasPrefix(fields[len(fields)-4], "*")
}

// emptyField returns the field that no time matches, such as a lone comma.
func emptyField(s *cron.SpecSchedule) string {
	switch {
	case s.Second == 0:
		return "second"
	case s.Minute == 0:
		return "minute"
	case s.Hour == 0:
		return "hour"
	case s.Dom == 0 && len(s.DomConstraints) == 0:
		return "day of month"
	case s.Month == 0:
		return "month"
	case s.Dow == 0 && len(s.DowConstraints) == 0:
		return "day of week"
	}
	return ""
}

// badExpression says which field of an expression does not parse. The parser does
// not tell; so each field is tried among others that match everything.
func badExpression(expression, name string, err error, field string) error {
	names := []string{"second", "minute", "hour", "day of month", "month", "day of week"}
	fields := strings.Fields(expression)
	if len(fields) != 5 && len(fields) != 6 {
		if len(fields) == 1 && strings.HasPrefix(fields[0], "@") {
			return fault(BadCron, field, "%v", err)
		}
		return fault(BadCron, field, "%d fields, and 5 or 6 are needed: [second] minute hour day-of-month month day-of-week", len(fields))
	}
	names = names[6-len(fields):]
	column := 0
	for i, f := range fields {
		column += strings.Index(expression[column:], f)
		alone := strings.Fields(strings.Repeat("* ", len(fields)))
		alone[i] = f
		if _, err := parser.ParseWithHashKey(strings.Join(alone, " "), name); err != nil {
			return fault(BadCron, field, "%s (column %d): %v", names[i], column+1, err)
		}
		column += len(f)
	}
	return fault(BadCron, field, "%v", err)
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

// nextElapsed takes every instant whose wall time matches, stretch by stretch.
func (m *matcher) nextElapsed(t time.Time) (time.Time, bool) {
	for s := stretchAt(t, m.zone); ; s = stretchAt(s.to, m.zone) {
		w := m.spec.Next(s.wall(t))
		if w.IsZero() {
			return time.Time{}, false
		}
		if at := s.instant(w); s.to.IsZero() || at.Before(s.to) {
			return at, true
		}
		t = s.to.Add(-1)
	}
}
