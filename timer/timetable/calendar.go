package timetable

import "time"

// A Calendar is a set of local times at which nothing is to happen. Timetables
// know nothing of calendars: whoever makes an occurrence asks whether it is left
// out. So a calendar that changes moves no occurrence.
type Calendar struct {
	Days     []Date         // whole days
	Yearly   []MonthDay     // whole days of each year
	Weekdays []time.Weekday // whole days of each week
	Spans    []Span         // parts of days, or many days
}

// Date is a day.
type Date struct {
	Year  int
	Month time.Month
	Day   int
}

// MonthDay is a day of each year that has it.
type MonthDay struct {
	Month time.Month
	Day   int
}

// Span is what lies between two wall times; To is not part of it. Both are given
// in UTC, which means nothing.
type Span struct{ From, To time.Time }

// Excludes reports whether an instant is left out, by the local time of a zone.
func (c *Calendar) Excludes(at time.Time, zone *time.Location) bool {
	year, month, day := at.In(zone).Date()
	for _, d := range c.Days {
		if d == (Date{year, month, day}) {
			return true
		}
	}
	for _, d := range c.Yearly {
		if d == (MonthDay{month, day}) {
			return true
		}
	}
	for _, d := range c.Weekdays {
		if d == at.In(zone).Weekday() {
			return true
		}
	}
	w := stretchAt(at, zone).wall(at)
	for _, s := range c.Spans {
		if !w.Before(s.From) && w.Before(s.To) {
			return true
		}
	}
	return false
}
