package life

import (
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
)

func TestMomentsToComeAreNeverEarly(t *testing.T) {
	m := Moment{time.UnixMicro(5_000_001)}
	for _, c := range []struct {
		in   time.Duration
		want store.Millis
	}{{-time.Hour, 5000}, {0, 5000}, {1, 5001}, {999 * time.Microsecond, 5001}, {time.Millisecond, 5002}, {time.Second, 6001}} {
		if got := m.In(c.in); got != c.want {
			t.Errorf("in %v: got %d, want %d", c.in, got, c.want)
		}
	}
	if got := m.Deadline(0, time.Second, 5500); got != 5500 {
		t.Errorf("deadline with an end: got %d", got)
	}
	if got := m.Deadline(2*time.Second, time.Second, 0); got != 7001 {
		t.Errorf("deadline of a task with a timeout of its own: got %d", got)
	}
}

func TestFailure(t *testing.T) {
	for _, c := range []struct {
		nack                  store.Nack
		cancelled, unreadable bool
		want                  Failure
	}{
		{nack: store.Nack{Outcome: store.OutcomeFailed}, want: Failure{3, store.ReasonNone, store.OutcomeFailed, store.ChangeRetrying}},
		{nack: store.Nack{Uncount: true}, want: Failure{2, store.ReasonNone, store.OutcomeNone, store.ChangeReleased}},
		{nack: store.Nack{Reason: store.ReasonMaxRetries, Outcome: store.OutcomeFailed}, want: Failure{3, store.ReasonMaxRetries, store.OutcomeFailed, store.ChangeDead}},
		{nack: store.Nack{Outcome: store.OutcomeFailed}, cancelled: true, want: Failure{3, store.ReasonCancelled, store.OutcomeCancelled, store.ChangeDead}},
		{nack: store.Nack{Uncount: true}, cancelled: true, want: Failure{2, store.ReasonCancelled, store.OutcomeNone, store.ChangeDead}},
		{nack: store.Nack{}, cancelled: true, unreadable: true, want: Failure{3, store.ReasonCorrupt, store.OutcomeNone, store.ChangeDead}},
	} {
		if got := Fail(&c.nack, 3, c.cancelled, c.unreadable); got != c.want {
			t.Errorf("%+v, cancelled %v, unreadable %v: got %+v, want %+v", c.nack, c.cancelled, c.unreadable, got, c.want)
		}
	}
}

func TestHoldsAheadAreOfWhatNothingElseDecides(t *testing.T) {
	const now, due = 1000, 1100
	for _, c := range []struct {
		name string
		task Task
		hold store.Hold
		want store.Status
	}{
		{name: "not asked for", want: store.NotDue},
		{name: "within", hold: store.Hold{Ahead: 100 * time.Millisecond}, want: store.OK},
		{name: "beyond, by less than a millisecond", hold: store.Hold{Ahead: 100*time.Millisecond - 1}, want: store.NotDue},
		{name: "within, but beyond the most", task: Task{Due: now + 251}, hold: store.Hold{Ahead: time.Hour}, want: store.NotDue},
		{name: "the most", task: Task{Due: now + 250}, hold: store.Hold{Ahead: time.Hour}, want: store.OK},
		{name: "below nothing", hold: store.Hold{Ahead: -time.Hour}, want: store.NotDue},
		{name: "of an ordering key", task: Task{Ordered: true}, hold: store.Hold{Ahead: time.Second}, want: store.NotDue},
		{name: "expired by then", task: Task{Expires: due}, hold: store.Hold{Ahead: time.Second}, want: store.NotDue},
		{name: "expired already", task: Task{Expires: now}, hold: store.Hold{Ahead: time.Second}, want: store.Expired},
		{name: "expires later", task: Task{Expires: due + 1}, hold: store.Hold{Ahead: time.Second}, want: store.OK},
		{name: "late by then", hold: store.Hold{Ahead: time.Second, Before: due}, want: store.NotDue},
		{name: "in time by then", hold: store.Hold{Ahead: time.Second, Before: due + 1}, want: store.OK},
		{name: "over by then", hold: store.Hold{Ahead: time.Second, Until: due}, want: store.NotDue},
		{name: "not over by then", hold: store.Hold{Ahead: time.Second, Until: due + 1}, want: store.OK},
	} {
		task := c.task
		task.Phase = Pending
		if task.Due == 0 {
			task.Due = due
		}
		if got := Hold(&task, &c.hold, now); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

func TestAHoldAheadCountsFromTheDueTime(t *testing.T) {
	m := Moment{time.UnixMicro(5_000_001)}
	if got := m.From(5000); got != m {
		t.Errorf("a hold of what is due begins at %v", got.At)
	}
	if got := m.From(5001).Deadline(0, time.Second, 0); got != 6001 {
		t.Errorf("deadline: got %d", got)
	}
	if got := m.Again(0, 5100); got != 5100 {
		t.Errorf("given back at once: due at %d", got)
	}
	if got := m.Again(time.Second, 5100); got != 6001 {
		t.Errorf("given back for a second: due at %d", got)
	}
	if got := m.Again(0, 4000); got != 5000 {
		t.Errorf("given back once due: due at %d", got)
	}
}
