// Package calendars turns calendars into what is sent of them, and back.
package calendars

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/service/schedules"
	"github.com/ddq-io/ddq/api/wire"
	"github.com/ddq-io/ddq/timer/timetable"
)

var weekdays = []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"} // by time.Weekday

// Of converts a calendar as it was asked for. What is no date is refused.
func Of(w *ddqv1.Calendar) (c schedules.Calendar, e *problem.Error) {
	if w == nil {
		return c, wire.Invalid("BAD_CALENDAR", "calendar", "is required")
	}
	c.Name = w.GetName()
	for i, text := range w.GetDays() {
		at, err := time.Parse(time.DateOnly, text)
		if err != nil {
			return c, badDate("days", i, "a day such as 2030-12-25")
		}
		c.Days = append(c.Days, timetable.Date{Year: at.Year(), Month: at.Month(), Day: at.Day()})
	}
	for i, text := range w.GetYearly() {
		at, err := time.Parse("2006-01-02", "2024-"+text) // a leap year
		if err != nil {
			return c, badDate("yearly", i, "a day of a year such as 12-25")
		}
		c.Yearly = append(c.Yearly, timetable.MonthDay{Month: at.Month(), Day: at.Day()})
	}
	for i, text := range w.GetWeekdays() {
		day := slices.Index(weekdays, strings.ToUpper(text))
		if day < 0 {
			return c, badDate("weekdays", i, "MON, TUE, WED, THU, FRI, SAT or SUN")
		}
		c.Weekdays = append(c.Weekdays, time.Weekday(day))
	}
	for i, span := range w.GetSpans() {
		from, err := wallTime(span.GetFrom())
		if err != nil {
			return c, badDate("spans", i, "from and to, local times such as 2030-12-24T12:00:00")
		}
		to, err := wallTime(span.GetTo())
		if err != nil {
			return c, badDate("spans", i, "from and to, local times such as 2030-12-24T12:00:00")
		}
		c.Spans = append(c.Spans, timetable.Span{From: from, To: to})
	}
	return c, nil
}

func badDate(list string, i int, want string) *problem.Error {
	return wire.Invalid("BAD_CALENDAR", fmt.Sprintf("%s[%d]", list, i), "is not %s", want)
}

const wallLayout = "2006-01-02T15:04:05"

// wallTime reads a local time, with or without seconds.
func wallTime(text string) (time.Time, error) {
	if at, err := time.Parse("2006-01-02T15:04", text); err == nil {
		return at, nil
	}
	return time.Parse(wallLayout, text)
}

// Wire is a calendar as it is sent.
func Wire(c *schedules.Calendar) *ddqv1.Calendar {
	w := &ddqv1.Calendar{Name: c.Name, Version: c.Version}
	for _, d := range c.Days {
		w.Days = append(w.Days, fmt.Sprintf("%04d-%02d-%02d", d.Year, d.Month, d.Day))
	}
	for _, d := range c.Yearly {
		w.Yearly = append(w.Yearly, fmt.Sprintf("%02d-%02d", d.Month, d.Day))
	}
	for _, d := range c.Weekdays {
		w.Weekdays = append(w.Weekdays, weekdays[d])
	}
	for _, s := range c.Spans {
		w.Spans = append(w.Spans, &ddqv1.CalendarSpan{From: s.From.Format(wallLayout), To: s.To.Format(wallLayout)})
	}
	return w
}
