package schedules_test

import (
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/schedules"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/timer/timetable"
)

func putCalendar(t *testing.T, s *service.Service, c schedules.Calendar) schedules.Put {
	t.Helper()
	done, err := s.Calendars.Put(t.Context(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// A calendar counts when a run is made, in previews, and for schedules that were there
// before it was changed.
func TestCalendarsLeaveOut(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		never := schedules.Calendar{Name: "never", Calendar: timetable.Calendar{Days: []timetable.Date{{Year: 1999, Month: 1, Day: 1}}}}
		if done := putCalendar(t, s, never); done.Outcome != schedules.Created || done.Version != 1 {
			t.Fatalf("%+v", done)
		}
		if done := putCalendar(t, s, never); done.Outcome != schedules.Unchanged || done.Version != 1 {
			t.Errorf("the same again: %+v", done)
		}
		n := scheduled("minutely", cron("* * * * *"))
		n.Calendars = []string{"never"}
		put(t, s, n)
		w := handsFor(t, s)
		d, _ := w.next()
		w.ack(d)

		from := time.Now().UTC().Truncate(time.Minute).Add(time.Minute)
		never.Spans = []timetable.Span{{From: from, To: from.Add(3 * time.Minute)}} // the schedule's zone is UTC
		if done := putCalendar(t, s, never); done.Version != 2 {
			t.Errorf("a change: %+v", done)
		}
		preview, err := s.Schedules.PreviewExisting(t.Context(), "", "minutely", schedules.PreviewRange{Count: 4})
		list := preview.Occurrences
		if err != nil || len(list) != 4 {
			t.Fatalf("%v, %v", list, err)
		}
		for i, o := range list {
			if out := o.Skipped == schedule.Excluded; out != (i < 3) {
				t.Errorf("%v is left out: %t", o.Local, out)
			}
		}
		if next := get(t, s, "minutely").Next; next != list[3].At {
			t.Errorf("next is %v, and not %v", next.Time(), list[3].Local)
		}
		d, _ = w.next()
		if d.Task.RunOf.Occurrence != list[3].At {
			t.Errorf("the next run is of %v, and not of %v", d.Task.RunOf.Occurrence.Time(), list[3].Local)
		}
		w.ack(d)
		if found := get(t, s, "minutely"); found.Skipped[schedule.Excluded] != 3 {
			t.Errorf("skipped are %v", found.Skipped)
		}
	})
}

func TestACalendarInUseStays(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		putCalendar(t, s, schedules.Calendar{Name: "weekends", Calendar: timetable.Calendar{Weekdays: []time.Weekday{time.Sunday}}})
		n := scheduled("nightly", cron("30 2 * * *"))
		n.Calendars = []string{"weekends"}
		put(t, s, n)
		if err := s.Calendars.Delete(t.Context(), "weekends"); servicetest.ReasonOf(err) != "CALENDAR_IN_USE" {
			t.Errorf("delete: %v", err)
		}
		n.Calendars = nil
		put(t, s, n)
		if err := s.Calendars.Delete(t.Context(), "weekends"); err != nil {
			t.Errorf("delete: %v", err)
		}
		n.Calendars = []string{"weekends"}
		if _, err := s.Schedules.Put(t.Context(), n, nil); servicetest.ReasonOf(err) != "NO_CALENDAR" {
			t.Errorf("a schedule that names it: %v", err)
		}
	})
}
