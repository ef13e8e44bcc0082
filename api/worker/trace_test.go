package worker

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/ddq-io/ddq/api/ddqv1"
)

const aTrace = "4bf92f3577b34da6a3ce929d0e0e4736"

func TestTracesThatNobodyRecordsAreNotSaid(t *testing.T) {
	for parent, want := range map[string]string{
		"00-" + aTrace + "-00f067aa0ba902b7-01":    aTrace,
		"cc-" + aTrace + "-00f067aa0ba902b7-03-xy": aTrace,
		"00-" + aTrace + "-00f067aa0ba902b7-00":    "",
		"00-" + aTrace + "-00f067aa0ba902b7":       "",
		"00-" + aTrace + "-00f067aa0ba902b7-":      "",
		"00-4bf-00f067aa0ba902b7-01":               "",
		"":                                         "",
	} {
		c := Trace{Parent: parent}
		if got := hex.EncodeToString(c.recorded()); got != want {
			t.Errorf("%q is %q, want %q", parent, got, want)
		}
	}
	none := Trace{}
	if n := testing.AllocsPerRun(100, func() { none.recorded() }); n != 0 {
		t.Errorf("no trace takes %v allocations", n)
	}
}

// What ends an attempt says in which trace it was, and whoever asked hears what became of that.
func TestSettlementsSayTheirTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []string
		answer := func(_ *fakeStream, f *ddqv1.SubscribeRequest) *ddqv1.Settled {
			mu.Lock()
			defer mu.Unlock()
			settled := &ddqv1.Settled{Sequence: f.GetSequence()}
			for _, a := range f.GetAcks() {
				got = append(got, fmt.Sprintf("ack of %s: %x", a.GetTaskId(), a.GetTraceId()))
				if a.GetTaskId() == "lost" {
					settled.Results = append(settled.Results, &ddqv1.SettleResult{TaskId: "lost", HoldToken: a.GetHoldToken(), Error: &ddqv1.Error{Code: 9, Reason: "HOLD_LOST"}})
				}
			}
			for _, n := range f.GetNacks() {
				got = append(got, fmt.Sprintf("nack of %s: %x", n.GetTaskId(), n.GetTraceId()))
			}
			return settled
		}
		x := start(t, &fakeServer{results: answer}, Config{}, HandlerFunc(func(_ context.Context, task Task) error {
			if task.ID == "quiet" {
				return nil
			}
			task.TraceNext(Trace{Parent: "00-" + aTrace + "-00f067aa0ba902b7-01"})
			task.OnSettled(func(kind EventKind) {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, kind.String()+" "+task.ID)
			})
			if task.ID == "failed" {
				return errBoom
			}
			return nil
		}))
		st := <-x.streams
		synctest.Wait()
		for _, id := range []string{"quiet", "good", "failed", "lost"} {
			st.deliver(id)
			synctest.Wait()
		}
		mu.Lock()
		defer mu.Unlock()
		want := []string{"ack of quiet: ", "ack of good: " + aTrace, "acked good", "nack of failed: " + aTrace, "nacked failed", "ack of lost: " + aTrace, "lost lost"}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
