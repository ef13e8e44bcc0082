package service

import (
	"context"
	"fmt"
	"slices"
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

// PutCalendar creates a calendar, or changes it. With ifVersion it must have this version,
// and with 0 not exist. Nodes know it within two seconds.
func (s *Schedules) PutCalendar(ctx context.Context, c Calendar, ifVersion *int64) (SchedulePut, error) {
	if err := s.ready(); err != nil {
		return SchedulePut{}, err
	}
	if err := c.check(); err != nil {
		return SchedulePut{}, err
	}
	cell, err := schedule.CalendarCell(c.Name, &c.Calendar)
	if err != nil {
		return SchedulePut{}, problem.Bug(err)
	}
	for range changeTries {
		there, err := s.calendarCell(ctx, c.Name)
		if err != nil {
			return SchedulePut{}, err
		}
		if err := checkCalendarVersion(&there, c.Name, ifVersion); err != nil {
			return SchedulePut{}, err
		}
		put := SchedulePut{Version: there.Version + 1, Outcome: PutChanged}
		switch {
		case there.Version == 0:
			put.Outcome = PutCreated
			if err := s.roomForCalendar(ctx); err != nil {
				return SchedulePut{}, err
			}
		case slices.Equal(there.Body, cell.Body):
			return SchedulePut{Version: there.Version, Outcome: PutUnchanged}, nil
		}
		if done, err := s.commitCalendar(ctx, store.Put{Cell: cell, If: there.Version}); done || err != nil {
			return put, problem.AsError(err)
		}
	}
	return SchedulePut{}, errBusy(c.Name)
}

func checkCalendarVersion(there *store.Cell, name string, ifVersion *int64) *problem.Error {
	switch {
	case ifVersion == nil || *ifVersion == there.Version:
		return nil
	case *ifVersion == 0:
		return &problem.Error{Kind: problem.Exists, Reason: "CALENDAR_EXISTS", Field: "name", Message: fmt.Sprintf("calendar %q exists", name)}
	}
	return &problem.Error{Kind: problem.Aborted, Reason: "VERSION_MISMATCH", Field: "if_version", Version: there.Version,
		Message: fmt.Sprintf("calendar %q is at version %d", name, there.Version)}
}

// commitCalendar reports false when the calendar is another one by now.
func (s *Schedules) commitCalendar(ctx context.Context, put store.Put) (bool, *problem.Error) {
	c := store.Commit{Puts: []store.Put{put}}
	var results []store.CommitResult
	_, err := s.node.Resolve(ctx, func() (err error) {
		_, results, err = s.cells.Commit(ctx, schedule.CalendarShard, nil, []store.Commit{c})
		return err
	})
	if err != nil {
		return false, problem.FromStore(err)
	}
	s.node.Calendars().Forget()
	return results[0].Status == store.OK || schedule.Landed(&c, &results[0]), nil
}

func (s *Schedules) calendarCell(ctx context.Context, name string) (store.Cell, *problem.Error) {
	cells, err := s.cells.Cells(ctx, schedule.CalendarShard, []store.CellID{schedule.CalendarID(name)})
	if err != nil {
		return store.Cell{}, problem.FromStore(err)
	}
	return cells[0], nil
}

func (s *Schedules) roomForCalendar(ctx context.Context) *problem.Error {
	s.node.Calendars().Forget()
	known, err := s.node.Calendars().Fresh(ctx)
	if err != nil {
		return problem.FromStore(err)
	}
	if len(known) >= schedule.MaxCalendars {
		return &problem.Error{Kind: problem.Exhausted, Reason: "TOO_MANY_CALENDARS", Field: "name",
			Message: fmt.Sprintf("there are %d calendars; at most %d are allowed", len(known), schedule.MaxCalendars)}
	}
	return nil
}

// Calendar returns a calendar.
func (s *Schedules) Calendar(ctx context.Context, name string) (Calendar, error) {
	if err := s.ready(); err != nil {
		return Calendar{}, err
	}
	if err := checkScheduleName("name", name); err != nil {
		return Calendar{}, err
	}
	cell, e := s.calendarCell(ctx, name)
	if e != nil {
		return Calendar{}, e
	}
	if cell.Version == 0 {
		return Calendar{}, noCalendar("name", name)
	}
	read, err := schedule.CalendarIn(&cell)
	if err != nil {
		return Calendar{}, problem.Bug(err)
	}
	return Calendar{Name: name, Calendar: *read, Version: cell.Version}, nil
}

func noCalendar(field, name string) *problem.Error {
	return &problem.Error{Kind: problem.NotFound, Reason: "NO_CALENDAR", Field: field, Message: fmt.Sprintf("no calendar %q", name)}
}

const calendarsPage = "calendars:"

// ListCalendars pages through the calendars by name.
func (s *Schedules) ListCalendars(ctx context.Context, size int, token string) (all []Calendar, next string, err error) {
	if err := s.ready(); err != nil {
		return nil, "", err
	}
	after, ok := pagePosition(calendarsPage, token)
	if !ok {
		return nil, "", problem.AsError(store.ErrBadCursor)
	}
	position := store.Wake{}
	if after != "" {
		position.ID = schedule.CalendarID(after)
	}
	cells, err := s.cells.Listed(ctx, schedule.CalendarShard, schedule.CalendarList, position, size)
	if err != nil {
		return nil, "", problem.AsError(err)
	}
	for i := range cells {
		read, err := schedule.CalendarIn(&cells[i])
		if err != nil {
			return nil, "", problem.Bug(err)
		}
		all = append(all, Calendar{Name: cells[i].ID.Key(), Calendar: *read, Version: cells[i].Version})
	}
	if len(all) > 0 {
		next = pageToken(calendarsPage, all[len(all)-1].Name)
	}
	return all, next, nil
}

// DeleteCalendar deletes a calendar that no schedule names. It looks through all schedules.
func (s *Schedules) DeleteCalendar(ctx context.Context, name string) error {
	if _, err := s.Calendar(ctx, name); err != nil {
		return err
	}
	for token, first := "", true; token != "" || first; first = false {
		page, next, err := s.List(ctx, ScheduleFilter{}, s.limits.PageSize, token)
		if err != nil {
			return err
		}
		for i := range page {
			if slices.Contains(page[i].Calendars, name) {
				return &problem.Error{Kind: problem.Precondition, Reason: "CALENDAR_IN_USE", Field: "name",
					Message: fmt.Sprintf("schedule %q of topic %q names calendar %q", page[i].Name, page[i].Topic, name)}
			}
		}
		token = next
	}
	_, err := s.commitCalendar(ctx, store.Put{Cell: store.Cell{ID: schedule.CalendarID(name)}, If: store.AnyVersion})
	return problem.AsError(err)
}

// checkCalendars refuses a schedule that names a calendar which is not there.
func (s *Schedules) checkCalendars(ctx context.Context, n *NewSchedule) *problem.Error {
	for _, name := range n.Calendars {
		cell, err := s.calendarCell(ctx, name)
		if err != nil {
			return err
		}
		if cell.Version == 0 {
			return noCalendar("timetable.calendars", name)
		}
	}
	return nil
}

// check allows no calendar without entries: it would leave out nothing.
func (c *Calendar) check() *problem.Error {
	if err := checkScheduleName("name", c.Name); err != nil {
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
