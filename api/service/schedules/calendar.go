package schedules

import (
	"fmt"
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/timer/timetable"
)

// Calendar is a named set of local times that schedules leave out.
type Calendar struct {
	Name string
	timetable.Calendar
	Version int64
}

func noCalendar(field, name string) *problem.Error {
	return &problem.Error{Kind: problem.NotFound, Reason: "NO_CALENDAR", Field: field, Message: fmt.Sprintf("no calendar %q", name)}
}

// check allows no calendar without entries: it would leave out nothing.
func (c *Calendar) check() *problem.Error {
	if err := checkName("name", c.Name); err != nil {
		return err
	}
	n := len(c.Days) + len(c.Yearly) + len(c.Weekdays) + len(c.Spans)
	if n == 0 || n > schedule.MaxCalendarEntries {
		return problem.BadField("calendar", "BAD_CALENDAR", "a calendar has %d entries; 1 to %d are allowed", n, schedule.MaxCalendarEntries)
	}
	for i, span := range c.Spans {
		if !span.From.Before(span.To) {
			return problem.BadField(fmt.Sprintf("spans[%d]", i), "BAD_CALENDAR", "spans[%d] ends before it begins", i)
		}
	}
	for i, d := range c.Yearly {
		if at := time.Date(2024, d.Month, d.Day, 0, 0, 0, 0, time.UTC); at.Month() != d.Month || at.Day() != d.Day {
			return problem.BadField(fmt.Sprintf("yearly[%d]", i), "BAD_CALENDAR", "yearly[%d] is no day of a year", i)
		}
	}
	return nil
}
