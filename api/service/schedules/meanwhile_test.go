package schedules_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
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

// faster is a store at which something happens before dead letters are deleted, once.
type faster struct {
	*memstore.Store
	do func()
}

func (f *faster) RemoveDead(ctx context.Context, s store.Shard, ids []string) (store.Stamp, []store.Status, error) {
	if do := f.do; do != nil {
		f.do = nil
		do()
	}
	return f.Store.RemoveDead(ctx, s, ids)
}

// TestACallKeepsARunThatIsRequeuedBeforeItIsDiscarded: another one has taken its place, so the dead letter is deleted by the
// step of the first call behind its end, and somebody is faster.
func TestACallKeepsARunThatIsRequeuedBeforeItIsDiscarded(t *testing.T) {
	for name, call := range map[string]func(*testing.T, *service.Service) error{
		"trigger": func(t *testing.T, s *service.Service) error {
			_, err := s.Schedules.Trigger(t.Context(), schedules.Trigger{Name: "yearly", Overlap: schedule.Allow})
			return err
		},
		"pause": func(t *testing.T, s *service.Service) error {
			_, err := s.Schedules.Pause(t.Context(), "", "yearly", "", "")
			return err
		},
		"edit": func(t *testing.T, s *service.Service) error {
			edited := scheduled("yearly", cron("0 4 1 1 *"))
			edited.Overlap, edited.History = schedule.CancelOther, 0
			_, err := s.Schedules.Put(t.Context(), edited, nil)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := &faster{Store: memstore.New()}
				s := servicetest.Start(t, actors.Config{}, st)
				defer s.Node().Stop(context.WithoutCancel(t.Context()))
				yearly := scheduled("yearly", cron("0 3 1 1 *"))
				yearly.Overlap, yearly.History = schedule.CancelOther, 0
				put(t, s, yearly)
				w := handsFor(t, s)
				for range 2 {
					if _, err := s.Schedules.Trigger(t.Context(), schedules.Trigger{Name: "yearly"}); err != nil {
						t.Fatal(err)
					}
					servicetest.Idle(time.Second)
				}
				replaced, _ := w.next()
				shard, token, ok := subscription.DecodeToken(replaced.Token)
				if !ok {
					t.Fatalf("no token: %q", replaced.Token)
				}
				at := store.Shard{Topic: "report", N: shard}
				if _, nacked, err := st.Nack(t.Context(), at, []store.Nack{{ID: replaced.Task.ID, Token: token}}); err != nil || nacked[0].Status != store.OK {
					t.Fatalf("nack: %v, %v", nacked, err)
				}
				st.do = func() {
					if _, again, err := st.Requeue(t.Context(), at, []string{replaced.Task.ID}); err != nil || again[0].Status != store.OK {
						t.Errorf("requeue: %v, %v", again, err)
					}
				}
				if err := call(t, s); err != nil {
					t.Fatal(err)
				}
				servicetest.Idle(time.Second)
				found := get(t, s, "yearly")
				if !slices.ContainsFunc(found.Open, func(r schedule.Run) bool { return found.Schedule.ID(r.Occurrence) == replaced.Task.ID }) {
					t.Errorf("of %+v none is the run that is pending again", found.Open)
				}
			})
		})
	}
}
