package schedules_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/schedules"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
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

// meanwhile does something right before a commit to a shard that is made without an owner.
type meanwhile struct {
	*memstore.Store
	shard func(store.Shard) bool
	do    func() // once
}

func (m *meanwhile) Commit(ctx context.Context, s store.Shard, f *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error) {
	if do := m.do; f == nil && do != nil && m.shard(s) {
		m.do = nil
		do()
	}
	return m.Store.Commit(ctx, s, f, commits)
}

// Between the look for who names a calendar and its deletion a schedule is put that names it, or
// the other way round: the calendar is there for the schedule.
func TestACalendarStaysForAScheduleThatIsPutMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &meanwhile{Store: memstore.New()}
		s := servicetest.Start(t, actors.Config{}, st)
		defer s.Node().Stop(context.WithoutCancel(t.Context()))
		of := func(name string) schedules.Definition {
			putCalendar(t, s, schedules.Calendar{Name: name, Calendar: timetable.Calendar{Weekdays: []time.Weekday{time.Sunday}}})
			n := scheduled(name, cron("30 2 * * *"))
			n.Calendars = []string{name}
			return n
		}
		atCalendars := func(s store.Shard) bool { return s == schedule.CalendarShard }
		there := func(name string) {
			if c, err := s.Calendars.Get(t.Context(), name); err != nil || len(c.Weekdays) != 1 {
				t.Errorf("%s: %+v, %v", name, c, err)
			}
		}

		putFirst := of("put-first")
		st.shard, st.do = atCalendars, func() { put(t, s, putFirst) }
		if err := s.Calendars.Delete(t.Context(), "put-first"); servicetest.ReasonOf(err) != "CALENDAR_IN_USE" {
			t.Errorf("delete of a calendar that a schedule names by now: %v", err)
		}
		there("put-first")

		deletedFirst := of("deleted-first")
		st.shard = func(s store.Shard) bool { return !atCalendars(s) }
		st.do = func() {
			if err := s.Calendars.Delete(t.Context(), "deleted-first"); err != nil {
				t.Errorf("delete: %v", err)
			}
		}
		put(t, s, deletedFirst)
		there("deleted-first")
	})
}
