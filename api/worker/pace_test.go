package worker

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// acksOf lets a worker take one task after another from a server that answers
// settlements only when told to, and returns the sizes of its frames.
func acksOf(t *testing.T, maxInFlight int, play func(x *fixture, st *fakeStream, answer func())) (frames []int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var owed []*ddqv1.Settled
		f := &fakeServer{results: func(st *fakeStream, r *ddqv1.SubscribeRequest) *ddqv1.Settled {
			st.mu.Lock()
			defer st.mu.Unlock()
			frames = append(frames, len(r.GetAcks()))
			owed = append(owed, accept(r))
			return nil
		}}
		x := start(t, f, Config{Concurrency: 1, MaxInFlight: maxInFlight}, HandlerFunc(ok))
		st := <-x.streams
		answer := func() {
			synctest.Wait()
			st.mu.Lock()
			settled := owed
			owed = nil
			st.mu.Unlock()
			st.send(&ddqv1.SubscribeResponse{Settled: settled})
			synctest.Wait()
		}
		synctest.Wait()
		play(x, st, answer)
		answer()
		answer()
	})
	return frames
}

func TestAcksWaitForTheAnswerBeforeThem(t *testing.T) {
	frames := acksOf(t, 100, func(_ *fixture, st *fakeStream, answer func()) {
		for _, id := range []string{"a", "b", "c", "d"} {
			st.deliver(id)
			synctest.Wait()
		}
		answer()
	})
	if !slices.Equal(frames, []int{1, 3}) {
		t.Errorf("frames of %v acks, want the other 3 once the first was answered", frames)
	}
}

func TestAcksDoNotWaitForASlowAnswer(t *testing.T) {
	frames := acksOf(t, 100, func(_ *fixture, st *fakeStream, _ func()) {
		for _, id := range []string{"a", "b", "c"} {
			st.deliver(id)
			time.Sleep(settleGap)
			synctest.Wait()
		}
	})
	if !slices.Equal(frames, []int{1, 1, 1}) {
		t.Errorf("frames of %v acks, want one each gap", frames)
	}
}

func TestAcksDoNotWaitWhenCreditRunsOut(t *testing.T) {
	acksOf(t, 3, func(_ *fixture, st *fakeStream, _ func()) {
		st.deliver("a")
		synctest.Wait()
		st.deliver("b", "c", "d") // the credit is used up: no more comes before the acks
		synctest.Wait()
		// The ack of d may come when those before it have brought enough credit again.
		if _, _, acked, _, _ := st.books(); len(acked) < 3 {
			t.Errorf("%v acked, want no ack to wait for the answer to the first", acked)
		}
	})
}
