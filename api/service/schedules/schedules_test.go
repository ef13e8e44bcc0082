package schedules_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/schedules"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/api/service/workflows"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/timetable"
)

// scheduled is a schedule of the topic report.
func scheduled(name string, entries ...timetable.Entry) schedules.Definition {
	return schedules.Definition{Topic: "report", Name: name, Spec: schedule.Spec{
		Timetable: timetable.Spec{Entries: entries}, History: schedules.DefaultHistory,
		Template: schedule.Template{Task: store.Task{Payload: []byte("go"), MaxRetries: -1}},
	}}
}

func cron(expression string) timetable.Entry { return timetable.Entry{Cron: expression} }

func put(t *testing.T, s *service.Service, n schedules.Definition) schedules.Put {
	t.Helper()
	done, err := s.Schedules.Put(t.Context(), n, nil)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func get(t *testing.T, s *service.Service, name string) schedules.Status {
	t.Helper()
	found, err := s.Schedules.Get(t.Context(), "", name)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// hands are a worker that takes one task after the other.
type hands struct{ *servicetest.Stream }

func handsFor(t *testing.T, s *service.Service) hands {
	return hands{servicetest.Subscribe(t, s, "report", 100)}
}

// next waits for a task, and says when it came.
func (h hands) next() (subscription.Delivery, store.Millis) {
	h.T.Helper()
	for range 100_000 {
		h.Mu.Lock()
		if len(h.Got) > 0 {
			d, at := h.Got[0], h.At[0]
			h.Got, h.At = h.Got[1:], h.At[1:]
			h.Mu.Unlock()
			return d, store.Millis(at.UnixMilli())
		}
		h.Mu.Unlock()
		servicetest.Idle(time.Second)
	}
	h.T.Fatal("no task comes")
	return subscription.Delivery{}, 0
}

// ack is the end of a task, of which the schedule learns at once.
func (h hands) ack(d subscription.Delivery) {
	h.Settle(subscription.SettleAck, d)
	servicetest.Idle(10 * time.Millisecond)
}

func now() store.Millis { return store.Millis(time.Now().UnixMilli()) }

// TestATriggerThatCannotWaitIsRefused, and is no trigger that was asked for: the same request is taken once there is room.
func TestATriggerThatCannotWaitIsRefused(t *testing.T) {
	for overlap, most := range map[schedule.Overlap]int{schedule.BufferAll: schedule.MaxWaiting + 1, schedule.Allow: schedule.MaxOpen} {
		t.Run(fmt.Sprint(overlap), func(t *testing.T) {
			servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
				n := scheduled("yearly", cron("0 0 1 1 *"))
				n.Overlap = overlap
				put(t, s, n)
				for range most {
					if made, err := s.Schedules.Trigger(t.Context(), schedules.Trigger{Name: "yearly"}); err != nil || (made.ID == "") != made.Waiting {
						t.Fatalf("%+v, %v", made, err)
					}
				}
				last := schedules.Trigger{Name: "yearly", Request: "last"}
				if made, err := s.Schedules.Trigger(t.Context(), last); servicetest.ReasonOf(err) != "BUFFER_FULL" {
					t.Fatalf("%+v, %v", made, err)
				}
				if found := get(t, s, "yearly"); len(found.Skipped) > 0 {
					t.Errorf("what was refused is skipped: %v", found.Skipped)
				}
				w := handsFor(t, s)
				d, _ := w.next()
				w.ack(d)
				servicetest.Idle(time.Second)
				if made, err := s.Schedules.Trigger(t.Context(), last); err != nil || made.Repeated || (made.ID == "") != made.Waiting {
					t.Errorf("once there is room: %+v, %v", made, err)
				}
			})
		})
	}
}

func TestScheduleRuns(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		put(t, s, scheduled("minutely", cron("* * * * *")))
		w := handsFor(t, s)
		for range 3 {
			d, at := w.next()
			if at.Time().Second() != 0 || at != d.Task.Due || d.Task.RunOf == nil || d.Task.RunOf.Schedule != "minutely" || d.Task.RunOf.Occurrence != d.Task.Due {
				t.Fatalf("at %v: %+v", at.Time(), d.Task)
			}
			w.ack(d)
		}
		servicetest.Idle(time.Second)
		found := get(t, s, "minutely")
		if found.Totals[schedule.Done] != 3 || len(found.History) != 3 || found.Next != store.Millis(time.Now().Truncate(time.Minute).Add(time.Minute).UnixMilli()) {
			t.Errorf("after three runs it is %+v", found)
		}
	})
}

// Every replica puts its schedules when it starts.
func TestTheSamePutAgainChangesNothing(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		n := scheduled("every", timetable.Entry{Every: time.Hour})
		first := put(t, s, n)
		servicetest.Idle(30 * time.Minute)
		if again := put(t, s, n); again.Outcome != schedules.Unchanged || again.Version != 1 || again.Next != first.Next || first.Outcome != schedules.Created {
			t.Errorf("first %+v, again %+v", first, again)
		}
		n.Template.Task.Payload = []byte("stop")
		if other := put(t, s, n); other.Outcome != schedules.Changed || other.Version != 2 || other.Next != first.Next {
			t.Errorf("another payload: %+v, and the interval goes on at %v", other, first.Next.Time())
		}
		n.Timetable.Entries[0].Every = 2 * time.Hour
		if other := put(t, s, n); other.Version != 3 || other.Next != now().Add(2*time.Hour) {
			t.Errorf("another interval: %+v", other)
		}
	})
}

// A put that comes while a run is made ahead takes it back before it answers.
func TestEditTakesBackWhatWasMadeAhead(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		n := scheduled("minutely", cron("* * * * *"))
		put(t, s, n)
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute - 2*time.Second)))
		if found := get(t, s, "minutely"); len(found.Open) != 1 {
			t.Fatalf("open are %v", found.Open)
		}
		n.Template.Task.Payload = []byte("stop")
		put(t, s, n)
		w := handsFor(t, s)
		d, _ := w.next()
		if string(d.Task.Payload) != "stop" || d.Task.Due.Time().Second() != 0 {
			t.Errorf("delivered %q, due %v", d.Task.Payload, d.Task.Due.Time())
		}
	})
}

func TestPauseSkipsAndResumeGoesOn(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		put(t, s, scheduled("minutely", cron("* * * * *")))
		for range 2 { // the same again changes nothing
			paused, err := s.Schedules.Pause(t.Context(), "report", "minutely", "ada", "repairs")
			if err != nil || paused.Phase != schedule.Paused || paused.PausedBy != "ada" || paused.Note != "repairs" || paused.Next != 0 {
				t.Fatalf("%+v, %v", paused, err)
			}
		}
		servicetest.Idle(3*time.Minute + time.Second)
		resumed, err := s.Schedules.Resume(t.Context(), "", "minutely", "ada", "")
		if err != nil || resumed.Phase != schedule.Active || resumed.Next == 0 {
			t.Fatalf("%+v, %v", resumed, err)
		}
		if found := get(t, s, "minutely"); found.Skipped[schedule.WasPaused] != 3 || found.Made != 0 {
			t.Errorf("skipped %v, made %d", found.Skipped, found.Made)
		}
	})
}

func TestTriggerOnce(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		put(t, s, scheduled("nightly", cron("30 2 * * *")))
		trigger := schedules.Trigger{Name: "nightly", Request: "r"}
		first, err := s.Schedules.Trigger(t.Context(), trigger)
		if err != nil || first.ID == "" || first.Repeated {
			t.Fatalf("%+v, %v", first, err)
		}
		if again, err := s.Schedules.Trigger(t.Context(), trigger); err != nil || again.ID != first.ID || !again.Repeated {
			t.Errorf("again: %+v, %v", again, err)
		}
		if waits, err := s.Schedules.Trigger(t.Context(), schedules.Trigger{Name: "nightly", Overlap: schedule.BufferOne}); err != nil || !waits.Waiting {
			t.Errorf("while it is open: %+v, %v", waits, err)
		}
		w := handsFor(t, s)
		for range 2 {
			d, _ := w.next()
			w.ack(d)
		}
		servicetest.Idle(time.Second)
		if found := get(t, s, "nightly"); found.Totals[schedule.Done] != 2 || found.Made != 0 {
			t.Errorf("%+v", found)
		}
	})
}

// TestACancelledRunOfADeletedScheduleIsADeadLetter, as any task is that was cancelled while it ran: no other run takes its place.
func TestACancelledRunOfADeletedScheduleIsADeadLetter(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		put(t, s, scheduled("nightly", cron("30 2 * * *")))
		made, err := s.Schedules.Trigger(t.Context(), schedules.Trigger{Name: "nightly"})
		if err != nil {
			t.Fatal(err)
		}
		w := handsFor(t, s)
		d, _ := w.next()
		if _, err := s.Schedules.Delete(t.Context(), "", "nightly", schedules.Deletion{CancelRuns: true}); err != nil {
			t.Fatal(err)
		}
		w.Settle(subscription.SettleNack, d)
		servicetest.Idle(time.Second)
		if found, err := s.Tasks.Get(t.Context(), "report", made.ID); err != nil || found.State != store.StateDead || found.Reason != store.ReasonCancelled {
			t.Errorf("the run: %+v, %v", found, err)
		}
	})
}

func TestDeleteEndsRuns(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		put(t, s, scheduled("nightly", cron("30 2 * * *")))
		made, err := s.Schedules.Trigger(t.Context(), schedules.Trigger{Name: "nightly"})
		if err != nil {
			t.Fatal(err)
		}
		if foundIn, err := s.Schedules.Delete(t.Context(), "", "nightly", schedules.Deletion{CancelRuns: true}); err != nil || foundIn != "report" {
			t.Fatalf("%s, %v", foundIn, err)
		}
		if _, err := s.Tasks.Get(t.Context(), "report", made.ID); servicetest.ReasonOf(err) != "NO_TASK" {
			t.Errorf("the run: %v", err)
		}
		if _, err := s.Schedules.Get(t.Context(), "report", "nightly"); servicetest.ReasonOf(err) != "NO_SCHEDULE" {
			t.Errorf("the schedule: %v", err)
		}
	})
}

func TestBackfillMakesWhatWas(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		put(t, s, scheduled("hourly", cron("0 * * * *")))
		b := schedules.Backfill{Name: "hourly", ID: "b", From: now().Add(-5 * time.Hour), To: now().Add(time.Hour)}
		started, err := s.Schedules.Backfill(t.Context(), b)
		if err != nil || started.Total < 5 || started.Repeated {
			t.Fatalf("%+v, %v", started, err)
		}
		if again, err := s.Schedules.Backfill(t.Context(), b); err != nil || !again.Repeated {
			t.Errorf("again: %+v, %v", again, err)
		}
		w := handsFor(t, s)
		var occurrences []store.Millis
		for range started.Total {
			d, _ := w.next()
			occurrences = append(occurrences, d.Task.RunOf.Occurrence)
			w.ack(d)
		}
		if !slices.IsSorted(occurrences) || occurrences[0] < b.From {
			t.Errorf("occurrences %v", occurrences)
		}
		servicetest.Idle(time.Second)
		if found := get(t, s, "hourly"); len(found.Backfills) != 0 || found.Totals[schedule.Done] != started.Total {
			t.Errorf("%+v", found)
		}
	})
}

// A preview is what happens.
func TestPreviewIsWhatHappens(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		n := scheduled("spread", cron("*/2 * * * *"))
		n.Jitter = 20 * time.Second
		put(t, s, n)
		preview, err := s.Schedules.PreviewExisting(t.Context(), "", "spread", schedules.PreviewRange{Count: 4})
		list := preview.Occurrences
		if err != nil || len(list) != 4 {
			t.Fatalf("%v, %v", list, err)
		}
		w := handsFor(t, s)
		for _, want := range list {
			d, _ := w.next()
			if d.Task.Due != want.Due || d.Task.RunOf.Occurrence != want.At {
				t.Errorf("run of %v due %v, previewed as %v due %v", d.Task.RunOf.Occurrence.Time(), d.Task.Due.Time(), want.At.Time(), want.Due.Time())
			}
			w.ack(d)
		}
	})
}

func TestSchedulesAreListedByPages(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		for i := range 25 {
			n := scheduled(fmt.Sprintf("s%02d", i), cron("30 2 * * *"))
			n.Labels = []store.Attribute{{Key: "odd", Value: fmt.Sprint(i%2 == 1)}}
			put(t, s, n)
		}
		for _, c := range []struct {
			filter schedules.Filter
			want   int
		}{
			{schedules.Filter{}, 25},
			{schedules.Filter{Topic: "report", Prefix: "s1"}, 10},
			{schedules.Filter{Prefix: "s07"}, 1},
			{schedules.Filter{Labels: []store.Attribute{{Key: "odd", Value: "true"}}}, 12},
			{schedules.Filter{Phase: schedule.Paused}, 0},
		} {
			var names []string
			for token, pages := "", 0; token != "" || pages == 0; pages++ {
				if pages > 100 {
					t.Fatalf("%+v: pages without end", c.filter)
				}
				page, next, err := s.Schedules.List(t.Context(), c.filter, 4, token)
				if err != nil || len(page) > 4 {
					t.Fatalf("%+v: %d, %v", c.filter, len(page), err)
				}
				for _, found := range page {
					names = append(names, found.Name)
				}
				token = next
			}
			slices.Sort(names)
			if len(names) != c.want || len(slices.Compact(names)) != c.want {
				t.Errorf("%+v: %v", c.filter, names)
			}
		}
	})
}

func TestSchedulesThatSkippedAreListedByPages(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		for i, overlap := range []schedule.Overlap{schedule.Allow, schedule.Skip, schedule.Allow, schedule.Allow, schedule.Skip, schedule.Skip, schedule.Allow, schedule.Skip} {
			n := scheduled(fmt.Sprintf("s%d", i), cron("0 * * * *"))
			n.Labels = []store.Attribute{{Key: "odd", Value: fmt.Sprint(i%2 == 1)}}
			if n.Overlap = overlap; i == 7 {
				n.History = 0
			}
			put(t, s, n)
		}
		began := store.Millis(time.Now().UnixMilli())
		time.Sleep(150 * time.Minute) // nobody works: of those that do not allow it, the second hour is skipped
		if _, err := s.Schedules.Pause(t.Context(), "", "s5", "", ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		odd := []store.Attribute{{Key: "odd", Value: "true"}}
		for _, c := range []struct {
			filter schedules.Filter
			want   []string
		}{
			{schedules.Filter{SkippedSince: began}, []string{"s1", "s4", "s5", "s7"}},
			{schedules.Filter{SkippedSince: began, Labels: odd}, []string{"s1", "s5", "s7"}},
			{schedules.Filter{SkippedSince: began, Labels: odd, Phase: schedule.Paused}, []string{"s5"}},
			{schedules.Filter{SkippedSince: began, Prefix: "s4"}, []string{"s4"}},
			{schedules.Filter{SkippedSince: began, Prefix: "s2"}, nil},
			{schedules.Filter{SkippedSince: began.Add(150 * time.Minute)}, []string{"s1", "s4", "s7"}},
			{schedules.Filter{SkippedSince: began.Add(24 * time.Hour)}, []string{"s7"}},
		} {
			if names := listedByOne(t, s, c.filter); !slices.Equal(names, c.want) {
				t.Errorf("%+v: %v, want %v", c.filter, names, c.want)
			}
		}
	})
}

// listedByOne is the names that a filter finds in pages of one, sorted.
func listedByOne(t *testing.T, s *service.Service, f schedules.Filter) (names []string) {
	t.Helper()
	for token, pages := "", 0; token != "" || pages == 0; pages++ {
		if pages > 100 {
			t.Fatalf("%+v: pages without end", f)
		}
		page, next, err := s.Schedules.List(t.Context(), f, 1, token)
		if err != nil || len(page) > 1 {
			t.Fatalf("%+v: %d, %v", f, len(page), err)
		}
		for _, found := range page {
			names = append(names, found.Name)
		}
		token = next
	}
	slices.Sort(names)
	return names
}

func TestATopicHasSoManySchedules(t *testing.T) {
	servicetest.Bubble(t, actors.Config{Topic: store.Topic{MaxSchedules: 3}}, func(t *testing.T, s *service.Service) {
		for i := range 5 { // they have cells, too, and do not count
			d := graph.Definition{Steps: []graph.Step{{Name: "a", Task: &graph.Template{Task: store.Task{MaxRetries: -1}}}}}
			if _, err := s.Workflows.Submit(t.Context(), &workflows.Submit{Topic: "report", ID: fmt.Sprint(i), Definition: d}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 3 {
			put(t, s, scheduled(fmt.Sprint(i), cron("30 2 * * *")))
		}
		if _, err := s.Schedules.Put(t.Context(), scheduled("3", cron("30 2 * * *")), nil); servicetest.ReasonOf(err) != "TOO_MANY_SCHEDULES" {
			t.Errorf("one more: %v", err)
		}
		if _, err := s.Schedules.Delete(t.Context(), "", "0", schedules.Deletion{}); err != nil {
			t.Fatal(err)
		}
		put(t, s, scheduled("3", cron("30 2 * * *")))
	})
}

func TestAFinishedScheduleIsNotTriggered(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		n := scheduled("once", timetable.Entry{At: []time.Time{time.Now().Add(time.Minute)}})
		put(t, s, n)
		w := handsFor(t, s)
		d, _ := w.next()
		w.ack(d)
		servicetest.Idle(time.Second)
		if found := get(t, s, "once"); found.Phase != schedule.Finished || found.Next != 0 {
			t.Fatalf("%+v", found)
		}
		if _, err := s.Schedules.Trigger(t.Context(), schedules.Trigger{Name: "once"}); servicetest.ReasonOf(err) != "SCHEDULE_FINISHED" {
			t.Errorf("trigger: %v", err)
		}
		if again := put(t, s, n); again.Outcome != schedules.Unchanged {
			t.Errorf("the same put again: %+v", again)
		}
	})
}

// TestTheBoundOfAPutIsOfNoOtherCall has a schedule be as large as a put lets it be: what it comes to remember has
// room of its own.
func TestTheBoundOfAPutIsOfNoOtherCall(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		large := func(bytes int) schedules.Definition {
			n := scheduled("large", cron("30 2 1 1 *"))
			n.Template, n.Workflow = schedule.Template{}, &graph.Definition{}
			for i := range 8 {
				task := graph.Template{Task: store.Task{Payload: make([]byte, bytes/8), MaxRetries: -1}}
				n.Workflow.Steps = append(n.Workflow.Steps, graph.Step{Name: fmt.Sprint("s", i), Task: &task})
			}
			return n
		}
		bytes := schedule.MaxBody
		for ; ; bytes -= 256 {
			_, err := s.Schedules.Put(t.Context(), large(bytes), nil)
			if err == nil {
				break
			}
			if servicetest.ReasonOf(err) != "BAD_SCHEDULE" {
				t.Fatal(err)
			}
		}
		if _, err := s.Schedules.Put(t.Context(), large(bytes+512), nil); servicetest.ReasonOf(err) != "BAD_SCHEDULE" {
			t.Errorf("an edit that makes it larger: %v", err)
		}
		if _, err := s.Schedules.Pause(t.Context(), "", "large", "ada", strings.Repeat("x", 1000)); err != nil {
			t.Errorf("a pause with a long note: %v", err)
		}
		if _, err := s.Schedules.Trigger(t.Context(), schedules.Trigger{Name: "large", Request: "one"}); err != nil {
			t.Errorf("a trigger: %v", err)
		}
	})
}
