package schedules_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/service/schedules"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store/memstore"
	"github.com/ddq-io/ddq/timer/timetable"
)

// TestAChangeWhoseAnswerIsLostIsNotRefused has the commit of a call be made, its answer be lost
// and another commit come behind it. Whether it was made is in the schedule; where that cannot be
// read any more, no answer may say that nothing was done.
func TestAChangeWhoseAnswerIsLostIsNotRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &servicetest.Lossy{Store: memstore.New()}
		s := servicetest.Start(t, actors.Config{}, st)
		defer s.Node().Stop(context.WithoutCancel(t.Context()))
		put(t, s, scheduled("nightly", cron("0 3 1 1 *")))
		another := func(name string) {
			if _, err := s.Schedules.Pause(t.Context(), "", name, "", ""); err != nil {
				t.Error(err)
			}
		}
		trigger := schedules.Trigger{Name: "nightly", Request: "one"}

		st.Set(func() { another("nightly") }, false)
		if made, err := s.Schedules.Trigger(t.Context(), trigger); err != nil || !made.Repeated || made.ID == "" {
			t.Errorf("the trigger that was read again: %+v, %v", made, err)
		}

		put(t, s, scheduled("daily", cron("0 3 1 1 *")))
		trigger.Name = "daily"
		st.Set(func() { another("daily"); st.Set(nil, true) }, false)
		_, err := s.Schedules.Trigger(t.Context(), trigger)
		if e := problem.FromStore(err); e == nil || e.Kind != problem.Unknown || e.Reason != "AMBIGUOUS" {
			t.Errorf("a trigger that was made is answered with %v", err)
		}
		st.Set(nil, false)
		if made, err := s.Schedules.Trigger(t.Context(), trigger); err != nil || !made.Repeated {
			t.Errorf("the same trigger again: %+v, %v", made, err)
		}

		put(t, s, scheduled("weekly", cron("0 3 1 1 *")))
		st.Set(func() { another("weekly"); st.Set(nil, true) }, false)
		_, err = s.Schedules.Put(t.Context(), scheduled("weekly", cron("0 4 1 1 *")), nil)
		if e := problem.FromStore(err); e == nil || e.Kind != problem.Unknown {
			t.Errorf("a put that was made is answered with %v", err)
		}
		st.Set(nil, false)
	})
}

// TestAChangeOfACalendarWhoseAnswerIsLostIsNotRefused: somebody else's comes behind it.
func TestAChangeOfACalendarWhoseAnswerIsLostIsNotRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &servicetest.Lossy{Store: memstore.New()}
		s := servicetest.Start(t, actors.Config{}, st)
		defer s.Node().Stop(context.WithoutCancel(t.Context()))
		closed := func(weekdays ...time.Weekday) schedules.Calendar {
			return schedules.Calendar{Name: "closed", Calendar: timetable.Calendar{Weekdays: weekdays}}
		}
		first := putCalendar(t, s, closed(time.Sunday))
		st.Set(func() { putCalendar(t, s, closed(time.Monday)) }, false)
		_, err := s.Calendars.Put(t.Context(), closed(time.Saturday), &first.Version)
		if e := problem.FromStore(err); e == nil || e.Reason != "AMBIGUOUS" {
			t.Errorf("a change that was made, of the version it asked for, is answered with %v", err)
		}
		if _, err := s.Calendars.Put(t.Context(), closed(time.Saturday), &first.Version); servicetest.ReasonOf(err) != "VERSION_MISMATCH" {
			t.Errorf("the same again, whose answer nobody loses, is answered with %v", err)
		}
	})
}
