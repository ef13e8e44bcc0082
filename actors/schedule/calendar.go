package schedule

import (
	"fmt"
	"time"

	"github.com/ddq-io/ddq/actors/schedule/cell"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/timetable"
)

// CalendarShard is where the calendars of all topics lie: no topic has its name.
var CalendarShard = store.Shard{Topic: "~~calendars"}

// CalendarList is the list of calendars in it, by name: all of them are listed at 0.
const CalendarList = "calendars"

// MaxCalendars is how many calendars there may be, and MaxCalendarEntries what one may have.
const (
	MaxCalendars       = 1000
	MaxCalendarEntries = 10_000
)

// CalendarID names the cell of a calendar.
func CalendarID(name string) store.CellID {
	return store.CellID([]byte{store.CellCalendar}) + store.CellID(name)
}

// Calendars are those that are known, by name.
type Calendars map[string]*timetable.Calendar

// Excluded says what the calendars of a schedule leave out; nil: nothing. One that is not
// known leaves nothing out.
func (c Calendars) Excluded(s *Schedule, zone *time.Location) func(time.Time) bool {
	return c.ExcludedOf(s.Calendars, zone)
}

// ExcludedOf is Excluded for some calendars by name.
func (c Calendars) ExcludedOf(names []string, zone *time.Location) func(time.Time) bool {
	var of []*timetable.Calendar
	for _, name := range names {
		if calendar := c[name]; calendar != nil {
			of = append(of, calendar)
		}
	}
	if len(of) == 0 {
		return nil
	}
	return func(at time.Time) bool {
		for _, calendar := range of {
			if calendar.Excludes(at, zone) {
				return true
			}
		}
		return false
	}
}

// CalendarCell is a calendar as it is stored.
func CalendarCell(name string, c *timetable.Calendar) (store.Cell, error) {
	var b cell.Calendar
	for _, d := range c.Days {
		b.Days = append(b.Days, int32(d.Year*10_000+int(d.Month)*100+d.Day))
	}
	for _, d := range c.Yearly {
		b.Yearly = append(b.Yearly, int32(int(d.Month)*100+d.Day))
	}
	for _, d := range c.Weekdays {
		b.Weekdays = append(b.Weekdays, int32(d))
	}
	for _, s := range c.Spans {
		b.SpanFrom, b.SpanTo = append(b.SpanFrom, s.From.UnixMilli()), append(b.SpanTo, s.To.UnixMilli())
	}
	body, err := b.MarshalVT()
	return store.Cell{ID: CalendarID(name), List: CalendarList, Body: body}, err
}

// MarkCalendar returns the cell of a calendar with the mark that it may be deleted, or without it, and whether
// it is another one than before. The error wraps ErrCorrupt.
func MarkCalendar(c store.Cell, leaving bool) (marked store.Cell, changed bool, err error) {
	var b cell.Calendar
	if err := b.UnmarshalVT(c.Body); err != nil {
		return c, false, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	changed, b.Leaving = b.Leaving != leaving, leaving
	c.Body, err = b.MarshalVT()
	return c, changed, err
}

// CalendarIn reads the cell of a calendar. The error wraps ErrCorrupt.
func CalendarIn(c *store.Cell) (*timetable.Calendar, error) {
	var b cell.Calendar
	if err := b.UnmarshalVT(c.Body); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if len(b.SpanFrom) != len(b.SpanTo) {
		return nil, fmt.Errorf("%w: spans of a calendar", ErrCorrupt)
	}
	out := &timetable.Calendar{}
	for _, d := range b.Days {
		out.Days = append(out.Days, timetable.Date{Year: int(d / 10_000), Month: time.Month(d / 100 % 100), Day: int(d % 100)})
	}
	for _, d := range b.Yearly {
		out.Yearly = append(out.Yearly, timetable.MonthDay{Month: time.Month(d / 100), Day: int(d % 100)})
	}
	for _, d := range b.Weekdays {
		out.Weekdays = append(out.Weekdays, time.Weekday(d))
	}
	for i := range b.SpanFrom {
		out.Spans = append(out.Spans, timetable.Span{From: time.UnixMilli(b.SpanFrom[i]).UTC(), To: time.UnixMilli(b.SpanTo[i]).UTC()})
	}
	return out, nil
}
