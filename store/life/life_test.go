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
