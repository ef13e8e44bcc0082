package schedules_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/api/service/schedules"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// TestCallsDoNotBringBackTheScheduleThatTheyRead has it deleted and made anew before the call's commit.
func TestCallsDoNotBringBackTheScheduleThatTheyRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &meanwhile{Store: memstore.New(), shard: func(s store.Shard) bool { return s != schedule.CalendarShard }}
		s := servicetest.Start(t, actors.Config{}, st)
		defer s.Node().Stop(context.WithoutCancel(t.Context()))
		put(t, s, scheduled("nightly", cron("0 3 1 1 *")))
		st.do = func() {
			if _, err := s.Schedules.Delete(t.Context(), "report", "nightly", schedules.Deletion{}); err != nil {
				t.Error(err)
			}
			put(t, s, scheduled("nightly", cron("0 4 1 1 *")))
		}
		if _, err := s.Schedules.Pause(t.Context(), "report", "nightly", "ada", ""); err != nil {
			t.Error(err)
		}
		if now := get(t, s, "nightly"); now.Phase != schedule.Paused || now.Timetable.Entries[0].Cron != "0 4 1 1 *" {
			t.Errorf("the one that was made anew is in phase %v and goes %+v", now.Phase, now.Timetable.Entries)
		}
	})
}

// TestWhatAnotherCallDidIsNotTakenForOnesOwn has a call find that the schedule is by now as the call would have made it.
func TestWhatAnotherCallDidIsNotTakenForOnesOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &meanwhile{Store: memstore.New(), shard: func(s store.Shard) bool { return s != schedule.CalendarShard }}
		s := servicetest.Start(t, actors.Config{}, st)
		defer s.Node().Stop(context.WithoutCancel(t.Context()))
		remove := func() error {
			_, err := s.Schedules.Delete(t.Context(), "report", "nightly", schedules.Deletion{IfVersion: 1})
			return err
		}
		put(t, s, scheduled("nightly", cron("0 3 1 1 *")))
		st.do = func() {
			if err := remove(); err != nil {
				t.Errorf("the deletion that comes first: %v", err)
			}
		}
		if err := remove(); servicetest.ReasonOf(err) != "NO_SCHEDULE" {
			t.Errorf("the one behind it is answered with %v", err)
		}

		trigger := schedules.Trigger{Topic: "report", Name: "daily", Request: "one"}
		put(t, s, scheduled("daily", cron("0 3 1 1 *")))
		st.do = func() {
			if made, err := s.Schedules.Trigger(t.Context(), trigger); err != nil || made.Repeated {
				t.Errorf("the trigger that comes first: %+v, %v", made, err)
			}
		}
		if made, err := s.Schedules.Trigger(t.Context(), trigger); err != nil || !made.Repeated {
			t.Errorf("the one behind it is answered with %+v, %v", made, err)
		}
	})
}
