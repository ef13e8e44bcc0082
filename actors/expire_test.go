package actors_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/schedules"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
)

// watched is by when the watchdog has looked.
const watched = 25 * time.Second

// TestTasksExpireWithoutWorkers has more of them than one page of a look, behind others that do not expire.
func TestTasksExpireWithoutWorkers(t *testing.T) {
	servicetest.Bubble(t, actors.Config{Topic: store.Topic{Shards: 1}}, func(t *testing.T, s *service.Service) {
		var tasks []service.NewTask
		for i := range 900 {
			task := servicetest.After("mail", fmt.Sprintf("t%03d", i), time.Duration(i)*time.Millisecond)
			if i >= 300 {
				task.ExpireAfter = 5 * time.Second
			}
			tasks = append(tasks, task)
		}
		if _, err := s.Tasks.Enqueue(t.Context(), tasks); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if got := statesOf(t, s, tasks); got[store.StateReady] != 900 {
			t.Errorf("before their expiry: %v", got)
		}
		time.Sleep(2*watched + 3*watched)
		synctest.Wait()
		if got := statesOf(t, s, tasks); got[store.StateExpired] != 600 || got[store.StateReady] != 300 {
			t.Errorf("behind it: %v, want 600 expired and 300 ready", got)
		}
		w := servicetest.Subscribe(t, s, "mail", 1000)
		time.Sleep(time.Second)
		synctest.Wait()
		if got := len(w.Take()); got != 300 {
			t.Errorf("a worker gets %d, want 300", got)
		}
	})
}

// TestWhatComesMeanwhileHidesNoExpiry has tasks come for as long as the watchdog looks: it began behind the last one
// that it had seen, and so never looked again at those that expired since.
func TestWhatComesMeanwhileHidesNoExpiry(t *testing.T) {
	servicetest.Bubble(t, actors.Config{Topic: store.Topic{Shards: 1}}, func(t *testing.T, s *service.Service) {
		expires := servicetest.After("mail", "expires", 0)
		expires.ExpireAfter = 2 * watched
		tasks := []service.NewTask{expires}
		for i := range 40 {
			tasks = append(tasks, servicetest.After("mail", fmt.Sprint("t", i), time.Duration(i)*watched/5))
		}
		if _, err := s.Tasks.Enqueue(t.Context(), tasks); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * watched)
		synctest.Wait()
		if got := statesOf(t, s, tasks[:1]); got[store.StateExpired] != 1 {
			t.Errorf("%v, want it expired", got)
		}
	})
}

func statesOf(t *testing.T, s *service.Service, tasks []service.NewTask) map[store.State]int {
	t.Helper()
	states := make(map[store.State]int)
	for i := range tasks {
		found, err := s.Tasks.Get(t.Context(), "mail", tasks[i].Task.ID)
		if err != nil {
			t.Fatal(err)
		}
		states[found.State]++
	}
	return states
}

// TestAnExpiredRunKeepsNoScheduleSkipping has a schedule whose runs nobody takes.
func TestAnExpiredRunKeepsNoScheduleSkipping(t *testing.T) {
	servicetest.Bubble(t, actors.Config{Topic: store.Topic{Shards: 1}}, func(t *testing.T, s *service.Service) {
		spec := everySpec(time.Minute)
		spec.Template.ExpireAfter = 10 * time.Second
		if _, err := s.Schedules.Put(t.Context(), schedules.Definition{Topic: "mail", Name: "tick", Spec: spec}, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5*time.Minute + watched)
		synctest.Wait()
		got, err := s.Schedules.Get(t.Context(), "mail", "tick")
		if err != nil {
			t.Fatal(err)
		}
		if got.Totals[schedule.Failed] < 4 || got.Skipped[schedule.Overlapped] > 0 {
			t.Errorf("ended %v, skipped %v: want a run each minute", got.Totals, got.Skipped)
		}
	})
}
