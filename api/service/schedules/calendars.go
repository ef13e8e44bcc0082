package schedules

import (
	"context"
	"fmt"
	"slices"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/api/service/pagetoken"
	"github.com/ddq-io/ddq/api/service/scope"
	"github.com/ddq-io/ddq/store"
)

// Calendars is what is done with the calendars of schedules. Any node does it.
type Calendars struct {
	calendarCells
	schedules *Schedules // which name them
}

// NewCalendars returns the use cases of the calendars of schedules.
func NewCalendars(s *Schedules) *Calendars {
	return &Calendars{calendarCells: s.calendars, schedules: s}
}

// Put creates a calendar, or changes it. With ifVersion it must have this version,
// and with 0 not exist. Nodes know it within two seconds.
func (s *Calendars) Put(ctx context.Context, c Calendar, ifVersion *int64) (Put, error) {
	if err := s.schedules.ready(); err != nil {
		return Put{}, err
	}
	if err := c.check(); err != nil {
		return Put{}, err
	}
	cell, err := schedule.CalendarCell(c.Name, &c.Calendar)
	if err != nil {
		return Put{}, problem.Bug(err)
	}
	unsure := false // whether a try was made whose answer was lost
	for range changeTries {
		there, err := s.read(ctx, c.Name)
		if err != nil {
			return Put{}, err.Behind(unsure)
		}
		if err := checkCalendarVersion(&there, c.Name, ifVersion); err != nil {
			return Put{}, err.Behind(unsure)
		}
		put := Put{Version: there.Version + 1, Outcome: Changed}
		switch {
		case there.Version == 0:
			put.Outcome = Created
			if err := s.room(ctx); err != nil {
				return Put{}, err.Behind(unsure)
			}
		case slices.Equal(there.Body, cell.Body):
			return Put{Version: there.Version, Outcome: Unchanged}, nil
		}
		done, repeated, err := s.commit(ctx, store.Put{Cell: cell, If: there.Version})
		if done || err != nil {
			return put, problem.AsError(err.Behind(unsure))
		}
		unsure = unsure || repeated
	}
	return Put{}, errBusy(c.Name).Behind(unsure)
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

// room refuses one calendar more than there may be.
func (s *Calendars) room(ctx context.Context) *problem.Error {
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

// Get returns a calendar.
func (s *Calendars) Get(ctx context.Context, name string) (Calendar, error) {
	if err := s.schedules.ready(); err != nil {
		return Calendar{}, err
	}
	if err := checkName("name", name); err != nil {
		return Calendar{}, err
	}
	cell, e := s.read(ctx, name)
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

const calendarsPage = "calendars:"

// List pages through the calendars by name.
func (s *Calendars) List(ctx context.Context, size int, token string) (all []Calendar, next string, err error) {
	if err := s.schedules.ready(); err != nil {
		return nil, "", err
	}
	after, ok := pagetoken.Position(calendarsPage, token)
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
		next = pagetoken.Make(calendarsPage, all[len(all)-1].Name)
	}
	return all, next, nil
}

// Delete deletes a calendar that no schedule names, and none is about to: see claim.
func (s *Calendars) Delete(ctx context.Context, name string) error {
	if err := s.schedules.ready(); err != nil {
		return err
	}
	if err := checkName("name", name); err != nil {
		return err
	}
	unsure := false
	for range changeTries {
		there, e := s.read(ctx, name)
		switch {
		case e != nil:
			return e.Behind(unsure)
		case there.Version == 0 && unsure: // by the try whose answer was lost, if by no other
			return nil
		case there.Version == 0:
			return noCalendar("name", name)
		}
		deleted, repeated, err := s.deleteOnce(ctx, there)
		if deleted || err != nil {
			return problem.AsError(err)
		}
		unsure = unsure || repeated
	}
	return errBusy(name).Behind(unsure)
}

// deleteOnce reports false for a calendar that others change meanwhile. One that a schedule names is
// refused before it is marked.
func (s *Calendars) deleteOnce(ctx context.Context, there store.Cell) (deleted, repeated bool, err error) {
	name := there.ID.Key()
	if err := s.unused(ctx, name); err != nil {
		return false, false, err
	}
	version, marked, e := s.mark(ctx, there, true)
	if !marked || e != nil {
		return false, false, problem.AsError(e)
	}
	if err := s.unused(ctx, name); err != nil {
		_ = s.stayOne(ctx, name) // a mark that is left behind does no harm
		return false, false, err
	}
	deleted, repeated, e = s.commit(ctx, store.Put{Cell: store.Cell{ID: there.ID}, If: version})
	return deleted, repeated, problem.AsError(e)
}

// unused refuses a calendar that a schedule names, of any namespace: they share the calendars.
func (s *Calendars) unused(ctx context.Context, name string) error {
	users := Users{Cells: s.schedules.cells, Topics: s.schedules.topics}
	found, err := users.first(scope.All(ctx), func(s *schedule.Schedule) bool { return slices.Contains(s.Calendars, name) })
	switch {
	case err != nil:
		return problem.AsError(err)
	case found != nil:
		return &problem.Error{Kind: problem.Precondition, Reason: "CALENDAR_IN_USE", Field: "name",
			Message: fmt.Sprintf("schedule %q of topic %q names calendar %q", found.Name, found.topic, name)}
	}
	return nil
}
