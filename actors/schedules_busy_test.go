package actors_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
)

// TestEndsWaitForReadyTasks has runs of a herd end while other tasks wait for a worker: an end that nothing
// hangs on is noted once they have one, or a second later.
func TestEndsWaitForReadyTasks(t *testing.T) {
	const runs, others = 5, 20
	cfg := actors.Config{Topic: store.Topic{Shards: 1}}
	servicetest.Bubble(t, cfg, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", runs)
		var scheds []*scheduled
		for i := range runs {
			scheds = append(scheds, putSchedule(t, s.Node(), fmt.Sprint("hourly", i), everySpec(time.Hour)))
		}
		servicetest.Idle(time.Hour + 10*time.Millisecond)
		held := w.Take()
		if len(held) != runs {
			t.Fatalf("%d runs", len(held))
		}
		for i := range others {
			servicetest.EnqueueOne(t, s, servicetest.After("mail", fmt.Sprint("other", i), 0))
		}
		open := func() (n int) {
			for _, sched := range scheds {
				n += len(sched.read().Open)
			}
			return n
		}
		ack := func(i int) {
			w.Settle(subscription.SettleAck, held[i])
			servicetest.Idle(20 * time.Millisecond)
		}
		ack(0) // its look is a whole one, which finds when the next schedule wakes
		if open() != runs-1 {
			t.Fatalf("%d runs are open after the first end", open())
		}
		ack(1)
		ack(2)
		if open() != runs-1 {
			t.Fatalf("%d runs are open: ends were noted while tasks are ready", open())
		}
		servicetest.Idle(time.Second)
		if open() != runs-3 {
			t.Fatalf("%d runs are open a second later", open())
		}
		ack(3)
		ack(4)
		if open() == 0 {
			t.Fatal("ends were noted while tasks are ready")
		}
		w.Sub.Grant(others)
		servicetest.Idle(20 * time.Millisecond)
		if open() != 0 {
			t.Errorf("%d runs are open when no task is ready", open())
		}
		for _, sched := range scheds {
			if got := sched.read(); got.Totals[schedule.Done] != 1 {
				t.Errorf("%+v", got)
			}
		}
	})
}
