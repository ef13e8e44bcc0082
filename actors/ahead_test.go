package actors_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

const (
	testAhead = 10 * time.Millisecond
	untilHeld = time.Second - testAhead/2 // of a task that is due in a second
)

// stored is what the store has of a task of the topic mail.
func stored(t *testing.T, s *service.Service, id string) store.Snapshot {
	t.Helper()
	synctest.Wait()
	shard := store.Shard{Topic: "mail", N: place.ShardOf(id, s.Node().Config().Topic.Shards)}
	_, found, err := s.Node().Store().Get(t.Context(), shard, []string{id})
	if err != nil {
		t.Fatal(err)
	}
	return found[0]
}

// aheadBubble runs a test with a stream that has credit for a task, which is due in a
// second.
func aheadBubble(t *testing.T, test func(t *testing.T, s *service.Service, w *servicetest.Stream, due store.Millis)) {
	servicetest.Bubble(t, actors.Config{HoldAhead: testAhead}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 1)
		due := servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", time.Second)).Due
		test(t, s, w, due)
	})
}

// arrived is how many tasks were sent to a stream so far.
func arrived(w *servicetest.Stream) int {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return len(w.Got)
}

// sent is what is sent to a stream within a while.
func sent(w *servicetest.Stream) subscription.Delivery {
	w.T.Helper()
	servicetest.Idle(1200 * time.Millisecond)
	return w.TakeOne()
}

func wantState(t *testing.T, s *service.Service, id string, want store.State, attempt int) {
	t.Helper()
	if got := stored(t, s, id); got.State != want || got.Attempt != attempt {
		t.Errorf("%s is %v at attempt %d, want %v at %d", id, got.State, got.Attempt, want, attempt)
	}
}

func TestATaskIsHeldBeforeItIsDueAndSentThen(t *testing.T) {
	aheadBubble(t, func(t *testing.T, s *service.Service, w *servicetest.Stream, due store.Millis) {
		time.Sleep(untilHeld - 2*time.Millisecond)
		wantState(t, s, "a", store.StateScheduled, 0)
		time.Sleep(4 * time.Millisecond)
		wantState(t, s, "a", store.StateRunning, 1)
		servicetest.Idle(time.Until(due.Time()) - time.Microsecond)
		if arrived(w) > 0 {
			t.Fatal("sent before it is due")
		}
		d := sent(w)
		if got := store.Millis(w.At[0].UnixMilli()); got < due || got > due+2 {
			t.Errorf("sent %d ms after it was due", got-due)
		}
		if want := due.Add(30 * time.Second); d.Deadline != want {
			t.Errorf("deadline %d, want %d", d.Deadline, want)
		}
	})
}

func TestNothingIsHeldAheadWhereThatIsOff(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 1)
		due := servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", time.Second)).Due
		time.Sleep(time.Until(due.Time()) - time.Microsecond)
		wantState(t, s, "a", store.StateScheduled, 0)
		sent(w)
	})
}

func TestAnOrderingKeyIsNotHeldAhead(t *testing.T) {
	servicetest.Bubble(t, actors.Config{HoldAhead: store.MaxHoldAhead}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 1)
		made := servicetest.EnqueueOne(t, s, servicetest.InLine("k", "a", time.Second))
		servicetest.Idle(time.Until(made.Due.Time()) - time.Microsecond)
		for n := range s.Node().Config().Topic.Shards {
			stats, err := s.Node().Store().Stats(t.Context(), []store.Shard{{Topic: "mail", N: n}})
			if err != nil || stats[0].Running != 0 {
				t.Fatalf("running in shard %d: %+v, %v", n, stats, err)
			}
		}
		sent(w)
	})
}

func TestAnEditOfATaskThatIsHeldAheadIsTold(t *testing.T) {
	aheadBubble(t, func(t *testing.T, s *service.Service, w *servicetest.Stream, due store.Millis) {
		time.Sleep(untilHeld + 2*time.Millisecond)
		wantState(t, s, "a", store.StateRunning, 1)
		if _, err := s.Tasks.Delete(t.Context(), "mail", "a"); servicetest.ReasonOf(err) != "TASK_RUNNING" {
			t.Errorf("delete: %v", err)
		}
		sent(w)
	})
}

func TestADeleteBeforeTheHoldWins(t *testing.T) {
	aheadBubble(t, func(t *testing.T, s *service.Service, w *servicetest.Stream, due store.Millis) {
		time.Sleep(untilHeld - 2*time.Millisecond)
		if _, err := s.Tasks.Delete(t.Context(), "mail", "a"); err != nil {
			t.Fatal(err)
		}
		servicetest.Idle(time.Second)
		if arrived(w) > 0 {
			t.Error("sent all the same")
		}
	})
}

func TestAStreamThatEndsGivesBackWhatWasHeldAhead(t *testing.T) {
	aheadBubble(t, func(t *testing.T, s *service.Service, w *servicetest.Stream, due store.Millis) {
		time.Sleep(untilHeld + time.Millisecond)
		wantState(t, s, "a", store.StateRunning, 1)
		w.Sub.Unsubscribe(nil)
		time.Sleep(time.Millisecond)
		got := stored(t, s, "a")
		if got.State != store.StateScheduled || got.Attempt != 0 || got.Due != due {
			t.Errorf("%v at attempt %d, due %d ms off", got.State, got.Attempt, got.Due-due)
		}
		other := servicetest.Subscribe(t, s, "mail", 1)
		if d := sent(other); d.Task.Attempt != 1 || time.Now().Before(due.Time()) {
			t.Errorf("attempt %d, %v before it is due", d.Task.Attempt, time.Until(due.Time()))
		}
	})
}

func TestACancelledTaskThatIsHeldAheadIsNotSent(t *testing.T) {
	aheadBubble(t, func(t *testing.T, s *service.Service, w *servicetest.Stream, due store.Millis) {
		time.Sleep(untilHeld + time.Millisecond)
		wantState(t, s, "a", store.StateRunning, 1)
		if _, err := s.Tasks.Cancel(t.Context(), t.Context(), "mail", "a", 0, false); err != nil {
			t.Fatal(err)
		}
		servicetest.Idle(time.Second)
		if arrived(w) > 0 || len(w.TakeCancels()) > 0 {
			t.Error("the worker heard of it")
		}
		wantState(t, s, "a", store.StateDead, 0)
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "b", time.Second)) // its credit is there again
		sent(w)
	})
}

func TestAShardThatPanicsSendsWhatItHeldAhead(t *testing.T) {
	aheadBubble(t, func(t *testing.T, s *service.Service, w *servicetest.Stream, due store.Millis) {
		time.Sleep(untilHeld + time.Millisecond)
		wantState(t, s, "a", store.StateRunning, 1)
		s.Node().PanicShard("mail", place.ShardOf("a", s.Node().Config().Topic.Shards))
		sent(w)
		if got := w.At[0]; got.Before(due.Time()) || got.After(due.Time().Add(time.Second)) {
			t.Errorf("sent %v after it was due", got.Sub(due.Time()))
		}
		wantState(t, s, "a", store.StateRunning, 1)
	})
}

func TestALostLeaseGivesBackWhatWasHeldAhead(t *testing.T) {
	aheadBubble(t, func(t *testing.T, s *service.Service, w *servicetest.Stream, due store.Millis) {
		time.Sleep(untilHeld + time.Millisecond)
		wantState(t, s, "a", store.StateRunning, 1)
		s.Node().LoseLease()
		time.Sleep(time.Millisecond)
		got := stored(t, s, "a")
		if got.State != store.StateScheduled || got.Attempt != 0 || got.Due != due {
			t.Errorf("%v at attempt %d, due %d ms off", got.State, got.Attempt, got.Due-due)
		}
		s.Node().LeaseBack()
		if d := sent(w); d.Task.Attempt != 1 {
			t.Errorf("attempt %d", d.Task.Attempt)
		}
	})
}

// A crowd is held before its moment, however many tasks it has.
func TestACrowdIsHeldBeforeItsMoment(t *testing.T) {
	const crowd = 2000
	servicetest.Bubble(t, actors.Config{HoldAhead: testAhead}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 1000)
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "first", 0)) // tells how large bodies are
		w.Settle(subscription.SettleAck, sent(w))
		_ = w.Sub.Grant(1)
		due := store.Millis(time.Now().Add(5 * time.Second).UnixMilli())
		var tasks []service.NewTask
		for i := range crowd {
			tasks = append(tasks, service.NewTask{Topic: "mail", Task: store.Task{ID: fmt.Sprint(i), MaxRetries: -1}, When: service.When{At: due}})
		}
		for len(tasks) > 0 {
			if _, err := s.Tasks.Enqueue(t.Context(), tasks[:1000]); err != nil {
				t.Fatal(err)
			}
			tasks = tasks[1000:]
		}
		servicetest.Idle(time.Until(due.Time()) - testAhead)
		running := 0
		for i := range crowd {
			if stored(t, s, fmt.Sprint(i)).State == store.StateRunning {
				running++
			}
		}
		if running < 900 { // what is left of room for a crowd is no reason to be early
			t.Errorf("%d are held %v before they are due, with room for 1000", running, testAhead)
		}
		servicetest.Idle(time.Until(due.Time()) - time.Microsecond)
		if n := arrived(w); n > 0 {
			t.Fatalf("%d are sent before they are due", n)
		}
		servicetest.Idle(2 * time.Millisecond)
		if n := arrived(w); n != 1000 {
			t.Errorf("%d are sent when they are due, with room for 1000", n)
		}
	})
}
