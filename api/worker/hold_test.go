package worker

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// A handler that runs for ten minutes under a hold of 30 s keeps it, and so
// does a task that waits behind it.
func TestHoldsAreExtendedWhileTasksRunOrWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := start(t, &fakeServer{}, Config{Concurrency: 1, MaxInFlight: 5}, HandlerFunc(func(ctx context.Context, task Task) error {
			if task.ID != "t0" {
				return nil
			}
			select {
			case <-time.After(10 * time.Minute):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}))
		st := <-x.streams
		synctest.Wait()
		st.deliver(ids(0, 5)...)
		time.Sleep(9 * time.Minute)
		st.mu.Lock()
		per := map[string]int{}
		for _, e := range st.extends {
			per[e.GetTaskId()]++
		}
		frames := st.frames
		st.mu.Unlock()
		for _, id := range ids(0, 5) { // every 10 s, or a little sooner
			if per[id] < 53 || per[id] > 75 {
				t.Errorf("%s was extended %d times", id, per[id])
			}
		}
		if frames > 75 {
			t.Errorf("%d frames for extends that fall together", frames)
		}
		time.Sleep(2 * time.Minute)
		_, _, acked, nacked, extends := st.books()
		if len(acked) != 5 || len(nacked) != 0 {
			t.Errorf("acked %v, nacked %v", acked, nacked)
		}
		time.Sleep(time.Hour)
		if _, _, _, _, after := st.books(); after != extends {
			t.Error("extends go on after the end")
		}
	})
}

func TestRefusedExtendTakesTheTaskFromItsHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		f.results = func(st *fakeStream, r *ddqv1.SubscribeRequest) *ddqv1.Settled {
			st.mu.Lock()
			clear(st.held)
			st.mu.Unlock()
			answer := &ddqv1.Settled{Sequence: r.GetSequence()}
			for _, e := range r.GetExtends() {
				answer.Results = append(answer.Results, &ddqv1.SettleResult{
					HoldToken: e.GetHoldToken(), Error: &ddqv1.Error{Code: int32(codes.FailedPrecondition), Reason: "HOLD_LOST", Message: "gone"},
				})
			}
			return answer
		}
		cause := make(chan error, 1)
		x := start(t, f, Config{Concurrency: 1, MaxInFlight: 3}, HandlerFunc(func(ctx context.Context, task Task) error {
			if task.ID != "t0" {
				t.Error("a waiting task whose hold was lost was run")
			}
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return nil
		}))
		st := <-x.streams
		synctest.Wait()
		st.deliver("t0", "t1")
		if got := <-cause; !errors.Is(got, ErrHoldLost) {
			t.Errorf("cancelled because of %v", got)
		}
		synctest.Wait()
		credit, _, acked, nacked, _ := st.books()
		if len(acked)+len(nacked) != 0 {
			t.Errorf("settled what was lost: acked %v, nacked %v", acked, nacked)
		}
		if got := x.w.Stats().Lost; got != 2 || credit != 3 {
			t.Errorf("%d lost, credit %d, want 2 and 3", got, credit)
		}
	})
}

// An extend is refused, to be said again after longer than the hold of 30 s lasts: it is said again before.
func TestHoldIsNotGivenUpForAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		refused := 0
		f.results = func(_ *fakeStream, r *ddqv1.SubscribeRequest) *ddqv1.Settled {
			answer := &ddqv1.Settled{Sequence: r.GetSequence()}
			for _, e := range r.GetExtends() {
				result := &ddqv1.SettleResult{HoldToken: e.GetHoldToken(), HoldMs: 30_000}
				if refused++; refused == 1 {
					result = &ddqv1.SettleResult{HoldToken: e.GetHoldToken(), Error: &ddqv1.Error{Code: int32(codes.Unavailable), Reason: "DRAINING", RetryAfterMs: 60_000}}
				}
				answer.Results = append(answer.Results, result)
			}
			return answer
		}
		x := start(t, f, Config{}, HandlerFunc(func(ctx context.Context, _ Task) error {
			select {
			case <-time.After(time.Minute):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}))
		st := <-x.streams
		synctest.Wait()
		st.deliver("t0")
		time.Sleep(2 * time.Minute)
		if _, _, acked, nacked, _ := st.books(); len(acked) != 1 || len(nacked) != 0 || x.w.Stats().Lost != 0 {
			t.Errorf("acked %v, nacked %v, %d lost after %d extends", acked, nacked, x.w.Stats().Lost, refused)
		}
	})
}

// The server is silent: the hold is over when its time is over, on the clock
// of this machine, although nobody said so.
func TestHoldThatRunsOutIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{results: func(*fakeStream, *ddqv1.SubscribeRequest) *ddqv1.Settled { return nil }}
		lostAfter := make(chan time.Duration, 1)
		x := start(t, f, Config{}, HandlerFunc(func(ctx context.Context, _ Task) error {
			began := time.Now()
			<-ctx.Done()
			lostAfter <- time.Since(began)
			return nil
		}))
		st := <-x.streams
		synctest.Wait()
		st.deliver("a")
		if got := <-lostAfter; got != fakeHold {
			t.Errorf("cancelled after %v, the hold was for %v", got, fakeHold)
		}
		synctest.Wait()
		if _, _, acked, _, extends := st.books(); len(acked) != 0 || extends < 2 {
			t.Errorf("acked %v after %d tries to extend", acked, extends)
		}
		f.results = nil
		st.end <- status.Error(codes.Unavailable, "restart")
		<-x.streams // the frames that were not answered do not hold up the end
	})
}

func TestCancelReachesTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		causes := make(chan error, 2)
		x := start(t, &fakeServer{}, Config{Concurrency: 1}, HandlerFunc(func(ctx context.Context, _ Task) error {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return errBoom
		}))
		st := <-x.streams
		synctest.Wait()
		st.deliver("a", "b") // a runs, b waits
		synctest.Wait()
		st.send(&ddqv1.SubscribeResponse{Cancels: []*ddqv1.Cancel{
			{TaskId: "b", HoldToken: []byte(holdToken("b"))}, {TaskId: "z", HoldToken: []byte(holdToken("z"))}, {TaskId: "a", HoldToken: []byte(holdToken("a"))},
		}})
		for range 2 {
			if got := <-causes; !errors.Is(got, ErrCanceled) {
				t.Errorf("cancelled because of %v", got)
			}
		}
		synctest.Wait()
		if _, _, _, nacked, _ := st.books(); len(nacked) != 2 {
			t.Errorf("nacked %v", nacked)
		}
	})
}

// An answer in parts extends and settles what it names, and leaves the rest to the next one.
func TestAnswersInPartsDecideWhatTheyName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		heard := map[string]EventKind{}
		var mu sync.Mutex
		f.checkpoint = func(c *ddqv1.Checkpoint) (*ddqv1.CheckpointResponse, error) { return &ddqv1.CheckpointResponse{}, nil }
		f.results = func(st *fakeStream, r *ddqv1.SubscribeRequest) *ddqv1.Settled {
			all := accept(r)
			for _, a := range r.GetAcks() {
				all.Results = append(all.Results, &ddqv1.SettleResult{TaskId: a.GetTaskId(), HoldToken: a.GetHoldToken()})
			}
			for _, c := range r.GetCheckpoints() {
				all.Results = append(all.Results, &ddqv1.SettleResult{TaskId: c.GetTaskId(), HoldToken: c.GetHoldToken(), Name: c.GetName()})
			}
			all.Part = true
			all.Results = slices.DeleteFunc(all.Results, func(r *ddqv1.SettleResult) bool { return r.GetTaskId() == "stuck" })
			return all // the rest does not come
		}
		x := start(t, f, Config{Concurrency: 10, Grace: time.Second}, HandlerFunc(func(ctx context.Context, task Task) error {
			task.OnSettled(func(k EventKind) {
				mu.Lock()
				defer mu.Unlock()
				heard[task.ID] = k
			})
			if task.ID == "kept" {
				return task.Checkpoint(ctx, "page", nil)
			}
			select {
			case <-time.After(2 * time.Minute):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}))
		st := <-x.streams
		synctest.Wait()
		st.deliver("a", "stuck", "b", "kept")
		time.Sleep(3 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if heard["a"] != Acked || heard["b"] != Acked || heard["kept"] != Acked || len(heard) != 3 {
			t.Errorf("heard %v, want the ends of all but the one that is stuck", heard)
		}
		if n := x.w.Stats().Lost; n != 1 {
			t.Errorf("%d were lost", n)
		}
	})
}
