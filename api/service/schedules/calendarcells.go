package schedules

import (
	"context"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
)

// calendarCells are calendars as the store has them.
type calendarCells struct {
	node  *actors.Node
	cells store.Cells // nil: the store keeps none
}

// there refuses calendars that are not there.
func (s *calendarCells) there(ctx context.Context, names []string) *problem.Error {
	for _, name := range names {
		cell, err := s.read(ctx, name)
		if err != nil {
			return err
		}
		if cell.Version == 0 {
			return noCalendar("timetable.calendars", name)
		}
	}
	return nil
}

// stay has calendars stay that may be about to be deleted. One that is not there is refused.
func (s *calendarCells) stay(ctx context.Context, names []string) *problem.Error {
	for _, name := range names {
		if err := s.stayOne(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (s *calendarCells) stayOne(ctx context.Context, name string) *problem.Error {
	for range changeTries {
		there, err := s.read(ctx, name)
		switch {
		case err != nil:
			return err
		case there.Version == 0:
			return noCalendar("timetable.calendars", name)
		}
		if _, done, err := s.mark(ctx, there, false); done || err != nil {
			return err
		}
	}
	return errBusy(name)
}

// mark marks a calendar that may be deleted, or takes that away, and returns the version that it then has. It
// reports false when the calendar is another one by now.
func (s *calendarCells) mark(ctx context.Context, there store.Cell, leaving bool) (version int64, done bool, _ *problem.Error) {
	marked, changed, err := schedule.MarkCalendar(there, leaving)
	switch {
	case err != nil:
		return 0, false, problem.Bug(err)
	case !changed:
		return there.Version, true, nil
	}
	done, _, e := s.commit(ctx, store.Put{Cell: marked, If: there.Version})
	return there.Version + 1, done, e
}

// commit reports whether it was made; it was not when the calendar is another one by now.
// Repeated says that an answer was lost before: then it may have been made all the same.
func (s *calendarCells) commit(ctx context.Context, put store.Put) (made, repeated bool, _ *problem.Error) {
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

func (s *calendarCells) read(ctx context.Context, name string) (store.Cell, *problem.Error) {
	cells, err := s.cells.Cells(ctx, schedule.CalendarShard, []store.CellID{schedule.CalendarID(name)})
	if err != nil {
		return store.Cell{}, problem.FromStore(err)
	}
	return cells[0], nil
}
