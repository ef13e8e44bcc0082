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

// namedBy returns the calendars that a schedule names. One that is not there is refused.
func (s *calendarCells) namedBy(ctx context.Context, n *Definition) ([]store.Cell, *problem.Error) {
	var all []store.Cell
	for _, name := range n.Calendars {
		cell, err := s.read(ctx, name)
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

// keep puts the calendars of a schedule back that were deleted while it was put: the one
// who deletes looks for schedules before and after, and may still have come too early to see it.
func (s *calendarCells) keep(ctx context.Context, named []store.Cell) *problem.Error {
	for i := range named {
		cell, err := s.read(ctx, named[i].ID.Key())
		if err != nil {
			return err.Behind(true)
		}
		if cell.Version != 0 {
			continue
		}
		if _, _, err := s.commit(ctx, store.Put{Cell: named[i]}); err != nil {
			return err.Behind(true)
		}
	}
	return nil
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
