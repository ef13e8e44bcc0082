package delivery

import (
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/store"
)

var quiet = slog.New(slog.DiscardHandler)

func deliveries(hold time.Duration, payload int, ids ...string) []subscription.Delivery {
	out := make([]subscription.Delivery, len(ids))
	for i, id := range ids {
		out[i] = subscription.Delivery{
			Topic:   "t",
			Task:    &store.Task{ID: id, Payload: make([]byte, payload), Attempt: 2},
			Token:   []byte("token " + id),
			HoldFor: hold,
		}
	}
	return out
}

func idsOf(ds []subscription.Delivery) (ids []string) {
	for _, d := range ds {
		ids = append(ids, d.Task.ID)
	}
	return ids
}

func idsHanded(ds []Handed) (ids []string) {
	for _, d := range ds {
		ids = append(ids, d.Task.ID)
	}
	return ids
}

func requireIDs(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s: got %q, want %q", what, got, want)
	}
}

func TestOneFrameMergesWhatWaits(t *testing.T) {
	o := newOutbox(quiet, time.Minute)
	o.Deliver(deliveries(time.Minute, 1, "a"))
	o.expect(7, 1, 1)
	o.Settled(7, []subscription.Settled{{ID: "x", Kind: subscription.SettleAck, Already: true}})
	o.Deliver(deliveries(time.Minute, 1, "b", "c"))
	<-o.wake
	now := time.Now()
	p := o.take(now)
	f := p.frame(now)
	requireIDs(t, "tasks", idsHanded(p.tasks), "a", "b", "c")
	if len(f.Deliveries) != 3 || len(f.Settled) != 1 || f.Settled[0].Sequence != 7 || !f.Settled[0].Results[0].Already {
		t.Errorf("got %v", f)
	}
	if f.Deliveries[0].Task.RetryCount != 1 || f.Deliveries[0].Task.Topic != "t" || string(f.Deliveries[0].HoldToken) != "token a" {
		t.Errorf("first is %v", f.Deliveries[0])
	}
	if p := o.take(now); !p.empty() {
		t.Errorf("taken twice: %+v", p)
	}
}

func TestFramesAreBoundedByBytesAndNumber(t *testing.T) {
	o := newOutbox(quiet, time.Minute)
	o.Deliver(deliveries(time.Minute, 600<<10, "a", "b", "c"))
	var many []string
	for i := range 600 {
		many = append(many, fmt.Sprint(i))
	}
	o.Deliver(deliveries(time.Minute, 1, many...))
	now := time.Now()
	var sizes []int
	for p := o.take(now); !p.empty(); p = o.take(now) {
		sizes = append(sizes, len(p.tasks))
	}
	if want := []int{2, 512, 89}; !reflect.DeepEqual(sizes, want) {
		t.Errorf("frames of %v tasks, want %v", sizes, want)
	}
}

func TestStaleDeliveriesAreNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox(quiet, time.Minute)
		o.Deliver(deliveries(10*time.Second, 1, "old"))
		time.Sleep(3 * time.Second)
		o.Deliver(deliveries(10*time.Second, 1, "young"))
		time.Sleep(2*time.Second + time.Millisecond)
		now := time.Now()
		p := o.take(now)
		requireIDs(t, "sent", idsHanded(p.tasks), "young")
		requireIDs(t, "stale", idsOf(p.stale), "old")
		if got, want := p.frame(now).Deliveries[0].HoldMs, int64(7999); got != want {
			t.Errorf("hold of %d ms left, want %d", got, want)
		}
		if got := p.frame(now).ServerTimeMs; got != 0 {
			t.Errorf("the time is %d, of a delivery that does not tell it", got)
		}
		p.tasks[0].Deadline = 1_000_000
		if got, want := p.frame(now).ServerTimeMs, int64(1_000_000-7999); got != want {
			t.Errorf("the time is %d, want %d", got, want)
		}
	})
}

func TestHalfOfTheHoldIsStillSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox(quiet, time.Minute)
		o.Deliver(deliveries(10*time.Second, 1, "a"))
		time.Sleep(5 * time.Second)
		p := o.take(time.Now())
		requireIDs(t, "sent", idsHanded(p.tasks), "a")
	})
}

func TestAnswerWaitsForEverySettlement(t *testing.T) {
	o := newOutbox(quiet, time.Minute)
	o.expect(3, 3, 3)
	o.Settled(3, []subscription.Settled{{ID: "a", Kind: subscription.SettleAck}})
	if p := o.take(time.Now()); !p.empty() {
		t.Fatalf("answered before all was known: %+v", p)
	}
	o.Settled(3, []subscription.Settled{
		{ID: "b", Kind: subscription.SettleNack, Err: &problem.Error{Kind: problem.Precondition, Reason: "HOLD_LOST"}},
		{ID: "c", Kind: subscription.SettleExtend, HoldFor: 1500 * time.Millisecond},
	})
	now := time.Now()
	p := o.take(now)
	got := p.frame(now).Settled[0]
	if len(got.Results) != 2 || got.Results[0].Error.Reason != "HOLD_LOST" || got.Results[1].HoldMs != 1500 {
		t.Errorf("got %v", got)
	}
	o.Settled(99, []subscription.Settled{{ID: "a"}})
	if p := o.take(time.Now()); !p.empty() {
		t.Errorf("answered a frame that never was: %+v", p)
	}
}

func TestAllWentWellIsAnEmptyAnswer(t *testing.T) {
	o := newOutbox(quiet, time.Minute)
	o.expect(1, 2, 2)
	o.Settled(1, []subscription.Settled{{ID: "a", Kind: subscription.SettleAck}, {ID: "b", Kind: subscription.SettleNack}})
	p := o.take(time.Now())
	if len(p.settled) != 1 || p.settled[0].Sequence != 1 || len(p.settled[0].Results) != 0 {
		t.Errorf("got %+v", p.settled)
	}
}

func TestLargeAnswersTakeFramesOfTheirOwn(t *testing.T) {
	o := newOutbox(quiet, time.Minute)
	for sequence := uint64(1); sequence <= 3; sequence++ {
		o.expect(sequence, 3000, 3000)
		lost := make([]subscription.Settled, 3000)
		for i := range lost {
			lost[i] = subscription.Settled{Kind: subscription.SettleAck, Already: true}
		}
		o.Settled(sequence, lost)
	}
	o.expect(4, MaxSettles, MaxSettles)
	o.Settled(4, slices.Repeat([]subscription.Settled{{Kind: subscription.SettleAck, Already: true}}, MaxSettles))
	o.Deliver(deliveries(time.Minute, 1, "a"))
	var frames [][2]int
	for p := o.take(time.Now()); !p.empty(); p = o.take(time.Now()) {
		frames = append(frames, [2]int{len(p.settled), len(p.tasks)})
	}
	// The task goes with the first frame: that one has room.
	if want := [][2]int{{1, 1}, {1, 0}, {1, 0}, {1, 0}}; !reflect.DeepEqual(frames, want) {
		t.Errorf("frames of answers and tasks %v, want %v", frames, want)
	}
}

func TestDrainIsAnnouncedOnceAndGivesBackWhatWaits(t *testing.T) {
	o := newOutbox(quiet, time.Minute)
	o.Deliver(deliveries(time.Minute, 1, "a"))
	o.Drain(3 * time.Second)
	o.Drain(9 * time.Second)
	if o.Deliver(deliveries(time.Minute, 1, "b")) {
		t.Error("took a task while draining")
	}
	now := time.Now()
	p := o.take(now)
	f := p.frame(now)
	requireIDs(t, "given back", idsOf(p.unwanted), "a")
	if len(f.Deliveries) != 0 || f.Drain.GetGraceMs() != 3000 {
		t.Errorf("got %v", f)
	}
	if !o.draining() {
		t.Error("does not drain")
	}
	if p := o.take(now); !p.empty() {
		t.Errorf("announced twice: %+v", p)
	}
}

func TestCloseReturnsWhatNeverWentOut(t *testing.T) {
	o := newOutbox(quiet, time.Minute)
	o.Deliver(deliveries(time.Minute, 1, "a"))
	p := o.take(time.Now())
	o.undelivered(p.tasks)
	o.Deliver(deliveries(time.Minute, 1, "b"))
	requireIDs(t, "rest", idsOf(o.close()), "a", "b")
	if o.Deliver(deliveries(time.Minute, 1, "c")) {
		t.Error("took a task after the end")
	}
	if rest := o.close(); rest != nil {
		t.Errorf("returned twice: %q", idsOf(rest))
	}
}

func TestAWorkerThatLeftIsAnsweredFirst(t *testing.T) {
	o := newOutbox(quiet, time.Minute)
	o.expect(1, 1, 1)
	o.leave()
	if o.finished() {
		t.Fatal("finished before its ack was answered")
	}
	o.Settled(1, []subscription.Settled{{ID: "a", Kind: subscription.SettleAck}})
	if o.finished() {
		t.Fatal("finished before the answer was taken")
	}
	o.take(time.Now())
	if !o.finished() {
		t.Fatal("not finished")
	}
}

func TestDemandsAreMergedIntoOneFrame(t *testing.T) {
	o := newOutbox(quiet, time.Minute)
	o.Demand(3, 2)
	o.Deliver(deliveries(time.Minute, 1, "a"))
	o.Demand(9, 4)
	<-o.wake
	now := time.Now()
	p := o.take(now)
	if f := p.frame(now); f.Demand.GetReady() != 9 || f.Demand.GetReturned() != 6 || len(f.Deliveries) != 1 {
		t.Errorf("got %v", f)
	}
	if p := o.take(now); !p.empty() {
		t.Errorf("taken twice: %+v", p)
	}
	o.Demand(0, 1)
	p = o.take(now)
	if f := p.frame(now); f == nil || f.Demand.GetReturned() != 1 {
		t.Errorf("alone it makes no frame: %v", f)
	}
}

func TestNothingIsDemandedAfterTheEnd(t *testing.T) {
	for name, end := range map[string]func(*outbox){
		"drain": func(o *outbox) { o.Drain(time.Second) },
		"leave": func(o *outbox) { o.leave() },
	} {
		for _, early := range []bool{true, false} {
			o := newOutbox(quiet, time.Minute)
			if early {
				o.Demand(1, 1)
			}
			end(o)
			if !early {
				o.Demand(1, 1)
			}
			now := time.Now()
			p := o.take(now)
			if f := p.frame(now); f.GetDemand() != nil {
				t.Errorf("%s, demanded before: %v: got %v", name, early, f)
			}
		}
	}
}

// Cancels do not overtake the deliveries that they are about.
func TestCancelWaitsForItsDelivery(t *testing.T) {
	o := newOutbox(quiet, time.Minute)
	for range frameTasks + 1 {
		o.Deliver(deliveries(time.Minute, 1, "a"))
	}
	o.Cancel([]subscription.CancelAsk{{ID: "a"}})
	first, second := o.take(time.Now()), o.take(time.Now())
	if len(first.cancels) != 0 || len(second.cancels) != 1 || len(second.tasks) != 1 {
		t.Errorf("cancels %d and %d, tasks %d and %d", len(first.cancels), len(second.cancels), len(first.tasks), len(second.tasks))
	}
	if third := o.take(time.Now()); !third.empty() {
		t.Errorf("a third frame has %v", third)
	}
}
