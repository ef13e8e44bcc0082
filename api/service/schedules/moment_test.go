package schedules_test

import (
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
	"github.com/ddq-io/ddq/timer/timetable"
)

// TestAnEditWithinTheLeadIsAsItsPreview has a calendar come, or go, three seconds before a time that it leaves out;
// in C and D the edit names that time, too.
func TestAnEditWithinTheLeadIsAsItsPreview(t *testing.T) {
	for _, c := range []struct {
		name          string
		timed, closed bool // before the edit: at the time; with the calendar
		want          schedule.Reason
	}{
		{"taken away", true, true, 0}, {"added", true, false, schedule.Excluded},
		{"named and added", false, false, schedule.Excluded}, {"named and taken away", false, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
				at := time.Now().UTC().Truncate(time.Second).Add(4 * time.Second)
				today := schedules.Calendar{Name: "today", Calendar: timetable.Calendar{Days: []timetable.Date{{Year: at.Year(), Month: at.Month(), Day: at.Day()}}}}
				if _, err := s.Calendars.Put(t.Context(), today, nil); err != nil {
					t.Fatal(err)
				}
				then, yearly := timetable.Entry{At: []time.Time{at}}, cron("0 0 1 1 *")
				before, after := scheduled("x", yearly), scheduled("x", then)
				if c.timed {
					before = scheduled("x", then, yearly)
				}
				if c.closed {
					before.Calendars = []string{"today"}
				} else {
					after.Calendars = []string{"today"}
				}
				put(t, s, before)
				time.Sleep(time.Second)
				synctest.Wait()
				dry, err := s.Schedules.Preview(t.Context(), after, schedules.PreviewRange{Count: 1})
				if err != nil || len(dry.Occurrences) != 1 || dry.Occurrences[0].Skipped != c.want {
					t.Errorf("a dry run says %+v: %v", dry.Occurrences, err)
				}
				put(t, s, after)
				is, err := s.Schedules.PreviewExisting(t.Context(), "report", "x", schedules.PreviewRange{Count: 1})
				if err != nil || len(is.Occurrences) != 1 || is.Occurrences[0].Skipped != c.want {
					t.Errorf("a preview says %+v: %v", is.Occurrences, err)
				}
				time.Sleep(5 * time.Second)
				synctest.Wait()
				got := get(t, s, "x")
				made := got.Made == 1 && len(got.Skipped) == 0
				if c.want == 0 && !made || c.want != 0 && (got.Made != 0 || got.Skipped[c.want] != 1) {
					t.Errorf("made %d, skipped %v", got.Made, got.Skipped)
				}
			})
		})
	}
}

// TestAPreviewCountsTheRunsBeforeIt looks past the last run that a schedule makes.
func TestAPreviewCountsTheRunsBeforeIt(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		n := scheduled("x", cron("0 * * * *"))
		n.MaxRuns = 3
		put(t, s, n)
		from := store.Millis(time.Now().Add(150 * time.Minute).UnixMilli())
		got, err := s.Schedules.PreviewExisting(t.Context(), "report", "x", schedules.PreviewRange{From: from})
		if err != nil || len(got.Occurrences) != 1 {
			t.Errorf("%d occurrences behind the second, want 1: %v", len(got.Occurrences), err)
		}
	})
}

// TestAReplacedRunLeavesNoDeadLetter has each run take the place of the one before, which a worker has.
func TestAReplacedRunLeavesNoDeadLetter(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "report", 10)
		n := scheduled("x", timetable.Entry{Every: time.Minute})
		n.Overlap = schedule.CancelOther
		put(t, s, n)
		var held []subscription.Delivery
		for range 300 { // a handler that ends when it is asked to
			time.Sleep(time.Second)
			held = append(held, w.Take()...)
			if len(w.TakeCancels()) > 0 {
				w.Settle(subscription.SettleNack, held[0])
				held = held[1:]
			}
		}
		if got := get(t, s, "x"); got.Totals[schedule.Removed] < 2 {
			t.Fatalf("ended %v", got.Totals)
		}
		dead, _, err := s.DeadLetters.List(t.Context(), "report", service.DeadFilter{}, 10, "")
		if err != nil || len(dead) > 0 {
			t.Errorf("%d dead letters: %v", len(dead), err)
		}
	})
}

// TestAnEditMakesNoRunOfATopicThatIsFull has a time be late, because the backlog is full, when the schedule is
// edited.
func TestAnEditMakesNoRunOfATopicThatIsFull(t *testing.T) {
	servicetest.Bubble(t, actors.Config{Topic: store.Topic{Shards: 1, MaxBacklog: 2}}, func(t *testing.T, s *service.Service) {
		for _, id := range []string{"a", "b"} {
			servicetest.EnqueueOne(t, s, servicetest.After("report", id, time.Hour))
		}
		n := scheduled("x", timetable.Entry{Every: time.Minute})
		put(t, s, n)
		time.Sleep(time.Minute + 5*time.Second)
		synctest.Wait()
		n.Template.Task.Payload = []byte("another")
		put(t, s, n)
		if got := get(t, s, "x"); got.Made != 0 {
			t.Errorf("made %d runs, and the topic is full", got.Made)
		}
	})
}
