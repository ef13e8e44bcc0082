package runtime

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
	"github.com/ddq-io/ddq/timer/timetable"
)

// slowCells has whoever lists wait, once what it is to return is read.
type slowCells struct {
	listed
	read, goOn chan struct{}
}

type listed = store.Cells

func (s *slowCells) Listed(ctx context.Context, shard store.Shard, list string, after store.Wake, limit int) ([]store.Cell, error) {
	cells, err := s.listed.Listed(ctx, shard, list, after, limit)
	if s.read != nil {
		s.read <- struct{}{}
		<-s.goOn
	}
	return cells, err
}

// A read that was in flight when a calendar changed may have the calendars of before. They
// are not for the callers that come after the change.
func TestCalendarsAreForgottenDuringARead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memstore.New()
		defer db.Close()
		cells := &slowCells{listed: db, read: make(chan struct{}), goOn: make(chan struct{})}
		c := NewCalendars(cells)

		first := make(chan int)
		go func() {
			known, err := c.Fresh(t.Context())
			if err != nil {
				t.Error(err)
			}
			first <- len(known)
		}()
		<-cells.read
		cell, err := schedule.CalendarCell("holidays", &timetable.Calendar{Yearly: []timetable.MonthDay{{Month: 1, Day: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := db.Commit(t.Context(), schedule.CalendarShard, nil, []store.Commit{{Puts: []store.Put{{Cell: cell}}}}); err != nil {
			t.Fatal(err)
		}
		c.Forget()
		cells.read = nil
		cells.goOn <- struct{}{}
		if n := <-first; n != 0 {
			t.Fatalf("the first read has %d calendars", n)
		}
		if known, err := c.Fresh(t.Context()); err != nil || known["holidays"] == nil {
			t.Errorf("after the change: %v, %v", known, err)
		}
	})
}
