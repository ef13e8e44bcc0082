package schedules

import (
	"context"
	"fmt"
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/timetable"
)

// Calendar is a named set of local times that schedules leave out.
type Calendar struct {
	Name string
	timetable.Calendar
	Version int64
}

// calendarsOf returns the calendars that a schedule names. One that is not there is refused.
func (s *Schedules) calendarsOf(ctx context.Context, n *Definition) ([]store.Cell, *problem.Error) {
	var all []store.Cell
	for _, name := range n.Calendars {
		cell, err := s.calendarCell(ctx, name)
		if err != nil {
			return nil, err
		}
		if cell.Version == 0 {
			return nil, noCalendar("timetable.calendars", name)
		}
		all = append(all, cell)
	}
	return all, nil
}

// keepCalendars puts the calendars of a schedule back that were deleted while it was put: the one
// who deletes looks for schedules before and after, and may still have come too early to see it.
func (s *Schedules) keepCalendars(ctx context.Context, named []store.Cell) *problem.Error {
	for i := range named {
		cell, err := s.calendarCell(ctx, named[i].ID.Key())
		if err != nil {
			return err.Behind(true)
		}
		if cell.Version != 0 {
			continue
		}
		if _, _, err := s.commitCalendar(ctx, store.Put{Cell: named[i]}); err != nil {
			return err.Behind(true)
		}
	}
	return nil
}

// commitCalendar reports whether it was made; it was not when the calendar is another one by now.
// Repeated says that an answer was lost before: then it may have been made all the same.
func (s *Schedules) commitCalendar(ctx context.Context, put store.Put) (made, repeated bool, _ *problem.Error) {
	c := store.Commit{Puts: []store.Put{put}}
	var results []store.CommitResult
	repeated, err := s.node.Resolve(ctx, func() (err error) {
		_, results, err = s.cells.Commit(ctx, schedule.CalendarShard, nil, []store.Commit{c})
		return err
	})
	if err != nil {
		return false, repeated, problem.FromStore(err)
	}
	s.node.Calendars().Forget()
	return results[0].Status == store.OK || schedule.Landed(&c, &results[0]), repeated, nil
}

func (s *Schedules) calendarCell(ctx context.Context, name string) (store.Cell, *problem.Error) {
	cells, err := s.cells.Cells(ctx, schedule.CalendarShard, []store.CellID{schedule.CalendarID(name)})
	if err != nil {
		return store.Cell{}, problem.FromStore(err)
	}
	return cells[0], nil
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
