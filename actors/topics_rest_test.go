package actors_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// restingFleet is a fleet in which a owns no shard of the topic mail, and the others have closed
// it, though it has 30 tasks that were due in three hours when it was last used.
func restingFleet(t *testing.T, names []string, test func(t *testing.T, f *servicetest.Fleet)) {
	servicetest.FleetBubble(t, names, func(t *testing.T, f *servicetest.Fleet) {
		a := f.Nodes["a"]
		if err := a.Sys.Node().Peer().Drain(true); err != nil {
			t.Fatal(err)
		}
		servicetest.Idle(time.Second)
		for i := range 30 {
			servicetest.EnqueueOne(t, a.Sys, servicetest.After("mail", fmt.Sprint("far-", i), 3*time.Hour))
		}
		servicetest.Idle(idleAfter + time.Minute)
		for _, name := range names[1:] {
			open(t, f.Nodes[name].Sys, "mail", false)
		}
		unowned(t, f, "mail")
		test(t, f)
	})
}

// opened checks that a topic was opened at a node without a worker, and has one work at a.
func opened(t *testing.T, f *servicetest.Fleet, at string) *servicetest.Stream {
	t.Helper()
	open(t, f.Nodes[at].Sys, "mail", true)
	return servicetest.Subscribe(t, f.Nodes["a"].Sys, "mail", 100)
}

// punctual takes deliveries, of which there must be so many at their milliseconds.
func punctual(t *testing.T, w *servicetest.Stream, want int) {
	t.Helper()
	got := w.Take()
	if len(got) != want {
		t.Fatalf("%d deliveries, want %d", len(got), want)
	}
	for i, d := range got {
		if late := w.At[len(w.At)-want+i].Sub(d.Task.Due.Time()); late < 0 || late > 2*time.Millisecond {
			t.Errorf("%s is late by %v", d.Task.ID, late)
		}
		w.Settle(subscription.SettleAck, d)
	}
}

func TestFarTaskOfAClosedTopicIsOnTime(t *testing.T) {
	restingFleet(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		servicetest.Idle(2*time.Hour + 30*time.Minute)
		open(t, f.Nodes["b"].Sys, "mail", false)
		servicetest.Idle(18 * time.Minute)
		w := opened(t, f, "b")
		defer w.Sub.Unsubscribe(nil)
		servicetest.Idle(61 * time.Second)
		punctual(t, w, 30)
	})
}

func TestFarTaskOfAClosedTopicIsOnTimeThoughItsOwnerDied(t *testing.T) {
	skipLong(t)
	restingFleet(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		f.Kill(f.Nodes["b"])
		servicetest.Idle(time.Minute)
		open(t, f.Nodes["c"].Sys, "mail", false)
		servicetest.Idle(2*time.Hour + 47*time.Minute)
		w := opened(t, f, "c")
		defer w.Sub.Unsubscribe(nil)
		servicetest.Idle(61 * time.Second)
		punctual(t, w, 30)
	})
}

// The owner dies when it has opened the topic, seconds before the tasks are due.
func TestTaskOfATopicThatOpenedIsOnTimeThoughItsOwnerDied(t *testing.T) {
	skipLong(t)
	restingFleet(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		servicetest.Idle(3*time.Hour - idleAfter - time.Minute - 40*time.Second)
		w := opened(t, f, "b")
		defer w.Sub.Unsubscribe(nil)
		f.Kill(f.Nodes["b"])
		servicetest.Idle(time.Minute)
		punctual(t, w, 30)
	})
}

// Another node brings a task nearer, and its notice is lost: it is found as soon as in a shard
// that is open and dozes.
func TestEditOfAClosedTopicIsFound(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		t.Run(fmt.Sprint("notices are lost: ", deaf), func(t *testing.T) {
			restingFleet(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
				f.Edit(func() { f.Deaf = deaf })
				servicetest.Idle(time.Minute)
				if _, err := f.Nodes["a"].Sys.Tasks.Reschedule(t.Context(), "mail", "far-3", service.When{Delay: 17 * time.Second}, 0); err != nil {
					t.Fatal(err)
				}
				servicetest.Idle(16 * time.Second)
				w := opened(t, f, "b")
				defer w.Sub.Unsubscribe(nil)
				servicetest.Idle(2 * time.Second)
				punctual(t, w, 1)
			})
		})
	}
}

// A schedule of hours has its topic closed between its runs.
func TestScheduleOfAClosedTopicIsOnTime(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		a, b := f.Nodes["a"].Sys, f.Nodes["b"].Sys
		if err := a.Node().Peer().Drain(true); err != nil {
			t.Fatal(err)
		}
		putSchedule(t, a.Node(), "hourly", everySpec(time.Hour))
		for range 3 {
			servicetest.Idle(30 * time.Minute)
			open(t, b, "mail", false)
			servicetest.Idle(29 * time.Minute)
			w := opened(t, f, "b")
			servicetest.Idle(time.Minute)
			punctual(t, w, 1)
			w.Sub.Unsubscribe(nil)
		}
	})
}

// Another node changes when a cell wakes, and its notice is lost.
func TestScheduleThatCameToAClosedTopicIsFound(t *testing.T) {
	restingFleet(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		putSchedule(t, f.Nodes["a"].Sys.Node(), "daily", everySpec(24*time.Hour))
		servicetest.Idle(idleAfter + 2*time.Minute)
		open(t, f.Nodes["b"].Sys, "mail", false)
		f.Edit(func() { f.Deaf = true })
		sched := &scheduled{t, f.Nodes["a"].Sys.Node(), "daily"}
		changed := sched.read()
		changed.Spec = everySpec(66 * time.Second)
		changed.Anchor = store.Millis(time.Now().UnixMilli())
		changed.Decided = changed.Anchor
		sched.commit(changed, sched.cell().Version, nil)
		servicetest.Idle(61 * time.Second)
		w := opened(t, f, "b")
		defer w.Sub.Unsubscribe(nil)
		servicetest.Idle(6 * time.Second)
		punctual(t, w, 1)
	})
}

// A store that goes back has tasks again that were settled, of a topic that is closed. No number
// that is counted up shows that.
func TestTaskThatTheStoreHasAgainOpensItsTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New()
		s := servicetest.Start(t, actors.Config{Topic: store.Topic{Shards: 1}}, st)
		defer s.Node().Stop(context.Background())
		w := servicetest.Subscribe(t, s, "mail", 10)
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "far", 24*time.Hour))
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "t", time.Second))
		synctest.Wait()
		was := st.Clone()
		servicetest.Idle(2 * time.Second)
		w.Settle(subscription.SettleAck, w.TakeOne())
		servicetest.Idle(time.Second)
		w.Sub.Unsubscribe(nil)
		servicetest.Idle(idleAfter + time.Minute)
		open(t, s, "mail", false)

		st.Restore(was)
		servicetest.Idle(2 * time.Second)
		open(t, s, "mail", true)
	})
}

// The clock of the store jumps to just before a far task.
func TestJumpOpensWhatIsNear(t *testing.T) {
	restingFleet(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		f.Store.SetClock(2*time.Hour + 47*time.Minute)
		servicetest.Idle(5 * time.Second)
		open(t, f.Nodes["b"].Sys, "mail", true)
	})
}

// A closed topic shows what it has in the store.
func TestClosedTopicKeepsItsGauges(t *testing.T) {
	restingFleet(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		servicetest.Idle(time.Minute)
		if got := f.Gauges("ddq_queue_tasks", "state")["scheduled"]; got != 30 {
			t.Errorf("%v scheduled tasks, want 30", got)
		}
		for i := range 30 {
			if _, err := f.Nodes["a"].Sys.Tasks.Delete(t.Context(), "mail", fmt.Sprint("far-", i)); err != nil {
				t.Fatal(err)
			}
		}
		servicetest.Idle(idleAfter + 2*time.Minute)
		open(t, f.Nodes["b"].Sys, "mail", false)
		if got := f.Gauges("ddq_queue_tasks", "state")["scheduled"]; got != 0 {
			t.Errorf("%v scheduled tasks, want none", got)
		}
	})
}
