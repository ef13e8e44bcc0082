package actors_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store/memstore"
)

// A store that loses the last it answered, as a Redis does that syncs every second and has a
// power cut, has tasks again that were held and settled. Neither is counted by the shard's seq.
func TestSettledTaskThatTheStoreLostComesAgainSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New()
		s := servicetest.Start(t, actors.Config{WatchdogInterval: time.Hour}, st)
		defer s.Node().Stop(context.Background())
		subscribed := servicetest.Subscribe(t, s, "mail", 10)
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "t", time.Second))
		synctest.Wait()
		was := st.Clone()
		time.Sleep(2 * time.Second)
		first := subscribed.Take()
		if len(first) != 1 {
			t.Fatalf("delivered %d tasks, want one", len(first))
		}
		subscribed.Settle(subscription.SettleAck, first[0])
		time.Sleep(time.Minute) // its shard dozes

		st.Restore(was)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := subscribed.Take(); len(got) != 1 || got[0].Task.ID != "t" {
			t.Errorf("delivered %d tasks two seconds after the store went back, want the one again", len(got))
		}
	})
}

// The tasks of a run for an audience end while the store's clock is an hour ahead, and it is put right before the shard has
// looked at the last ends, which it gathers for a moment: the run ends soon, and not when the clock comes there again.
func TestEndsOfATimeToComeAreHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New()
		s := servicetest.Start(t, actors.Config{}, st)
		defer s.Node().Stop(context.Background())
		newUsers(t, s.Node(), 20)
		w := servicetest.Subscribe(t, s, "mail", 100)
		spec := toUsers()
		spec.Audience.Window = 10 * time.Second
		sched := putSchedule(t, s.Node(), "hourly", spec)
		synctest.Wait()
		st.SetClock(time.Hour + 30*time.Second)
		time.Sleep(10 * time.Second)
		tasks := w.Take()
		if len(tasks) != 20 {
			t.Fatalf("delivered %d tasks, want 20", len(tasks))
		}
		for _, d := range tasks {
			time.Sleep(3 * time.Millisecond)
			w.Settle(subscription.SettleAck, d)
		}
		synctest.Wait()
		st.SetClock(0)
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "t", time.Minute)) // the node sees it
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if read := sched.read(); len(read.Open) > 0 {
			t.Errorf("half a minute after the clock was put right it is %+v", read)
		}
	})
}

// A schedule whose topic takes no tasks while the store's clock is ahead makes its run soon after both are right.
func TestARunThatIsTriedAgainInATimeToComeIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New()
		s := servicetest.Start(t, actors.Config{}, st)
		defer s.Node().Stop(context.Background())
		w := servicetest.Subscribe(t, s, "mail", 100)
		spec := everySpec(time.Hour)
		spec.Grace = time.Hour
		putSchedule(t, s.Node(), "hourly", spec)
		pause := func(on bool) {
			ref, err := s.Node().Topics().Open(t.Context(), "mail", true)
			if err != nil {
				t.Fatal(err)
			}
			c := *ref.Config()
			c.EnqueuePaused = on
			if _, err := s.Node().Store().PutTopic(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			if err := s.Node().Topics().Refresh(t.Context(), "mail"); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(59 * time.Minute)
		pause(true)
		time.Sleep(time.Minute + time.Second)
		st.SetClock(time.Hour / 2)
		time.Sleep(10 * time.Second)
		pause(false)
		st.SetClock(0)
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "t", time.Minute)) // the node sees it
		time.Sleep(30 * time.Second)
		if got := w.Take(); len(got) != 1 {
			t.Errorf("half a minute after the clock was put right %d tasks are delivered, want one", len(got))
		}
	})
}
