package worker

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/api/ddqv1"
)

func ok(context.Context, Task) error { return nil }

func TestHandlerGetsTheTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := make(chan Task, 1)
		x := start(t, &fakeServer{}, Config{Name: "w1", VisibilityTimeout: time.Minute}, HandlerFunc(func(_ context.Context, task Task) error {
			got <- task
			return nil
		}))
		st := <-x.streams
		if h := st.hello; h.GetTopic() != "mail" || h.GetWorker() != "w1" || h.GetVisibilityTimeoutMs() != 60000 || h.GetMaxInFlight() != 24 {
			t.Errorf("hello %v", h)
		}
		synctest.Wait()
		d := delivery("mail", "a")
		d.Task.ExecuteTime, d.Task.CreatedAt = timestamppb.New(time.Unix(7, 0)), timestamppb.New(time.Unix(6, 0))
		d.Task.Attributes = []*ddqv1.Attribute{{Key: "k", Value: "v"}}
		st.credit--
		st.send(&ddqv1.SubscribeResponse{Deliveries: []*ddqv1.Delivery{d}})
		want := Task{
			ID: "a", Topic: "mail", Payload: []byte("payload a"), Attributes: map[string]string{"k": "v"}, Attempt: 2, MaxRetries: 3,
			Due: time.Unix(7, 0).UTC(), CreatedAt: time.Unix(6, 0).UTC(), HoldToken: []byte("token-a"),
		}
		if task := <-got; !reflect.DeepEqual(task, want) {
			t.Errorf("got %+v\nwant %+v", task, want)
		}
	})
}

func TestOutcomes(t *testing.T) {
	long := strings.Repeat("é", 1000)
	for name, c := range map[string]struct {
		handler HandlerFunc
		want    *ddqv1.Nack // nil for an ack
	}{
		"nil":                {ok, nil},
		"error":              {func(context.Context, Task) error { return errBoom }, &ddqv1.Nack{Error: "boom"}},
		"permanent":          {func(context.Context, Task) error { return Permanent(errBoom) }, &ddqv1.Nack{Error: "boom", Permanent: true}},
		"permanent, wrapped": {func(context.Context, Task) error { return fmt.Errorf("x: %w", Permanent(errBoom)) }, &ddqv1.Nack{Error: "x: boom", Permanent: true}},
		"retry after":        {func(context.Context, Task) error { return RetryAfter(1500*time.Microsecond, errBoom) }, &ddqv1.Nack{Error: "boom", DelayMs: new(int64(2))}},
		"release":            {func(context.Context, Task) error { return Release(time.Second) }, &ddqv1.Nack{Error: "released by the handler", DelayMs: new(int64(1000)), Release: true}},
		"long error":         {func(context.Context, Task) error { return errors.New(long) }, &ddqv1.Nack{Error: long[:1024]}},
		"no UTF-8":           {func(context.Context, Task) error { return errors.New("a\xffb") }, &ddqv1.Nack{Error: "a?b"}},
		"goexit":             {func(context.Context, Task) error { runtime.Goexit(); return nil }, &ddqv1.Nack{Error: "the handler ended its goroutine"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := start(t, &fakeServer{}, Config{Concurrency: 1}, c.handler)
				st := <-x.streams
				for _, id := range []string{"a", "b"} { // the only handler goroutine survives
					synctest.Wait()
					st.deliver(id)
				}
				synctest.Wait()
				_, _, acked, nacked, _ := st.books()
				if c.want == nil {
					if !slices.Equal(acked, []string{"a", "b"}) || len(nacked) != 0 {
						t.Errorf("acked %v, nacked %v", acked, nacked)
					}
					return
				}
				c.want.TaskId, c.want.HoldToken = "a", []byte("token-a")
				if len(nacked) != 2 || len(acked) != 0 || nacked[0].String() != c.want.String() {
					t.Errorf("got %v, acked %v, want %v", nacked, acked, c.want)
				}
			})
		})
	}
}

func TestPanicBecomesANackWithItsPlace(t *testing.T) {
	for name, handler := range map[string]HandlerFunc{
		"explicit": func(context.Context, Task) error { panic("boom") },
		"runtime":  func(_ context.Context, task Task) error { return []error{}[len(task.ID)] },
	} {
		synctest.Test(t, func(t *testing.T) {
			x := start(t, &fakeServer{}, Config{Concurrency: 1}, handler)
			st := <-x.streams
			synctest.Wait()
			st.deliver("a", "b")
			synctest.Wait()
			_, _, _, nacked, _ := st.books()
			if len(nacked) != 2 || !strings.HasPrefix(nacked[0].GetError(), "panic: ") || !strings.Contains(nacked[0].GetError(), "worker_test.go:") {
				t.Errorf("%s: got %v", name, nacked)
			}
		})
	}
}

// The fake server checks at every frame that credit and holds stay within the
// limit; here it is kept full all the time.
func TestCreditIsUsedUpAndNeverOverrun(t *testing.T) {
	for _, limit := range []int32{0, 5} { // as asked for, and as the server cut it down
		synctest.Test(t, func(t *testing.T) {
			x := start(t, &fakeServer{limit: limit}, Config{Concurrency: 4, MaxInFlight: 10}, HandlerFunc(func(_ context.Context, task Task) error {
				if len(task.ID)%2 == 0 {
					time.Sleep(time.Millisecond)
				}
				return nil
			}))
			most := 10
			if limit > 0 {
				most = int(limit)
			}
			st := <-x.streams
			sent := 0
			for sent < 500 {
				synctest.Wait()
				credit, held, _, _, _ := st.books()
				if credit+held != most {
					t.Fatalf("credit %d and %d held: not the %d that may be in flight", credit, held, most)
				}
				st.deliver(ids(sent, sent+credit)...)
				sent += credit
				time.Sleep(time.Millisecond)
			}
			time.Sleep(time.Second)
			if _, held, acked, _, _ := st.books(); held != 0 || len(acked) != sent {
				t.Errorf("%d held, %d acked of %d", held, len(acked), sent)
			}
			if got := x.w.Stats(); got.Received != int64(sent) || got.Acked != int64(sent) {
				t.Errorf("stats %+v for %d tasks", got, sent)
			}
		})
	}
}

func TestConcurrencyIsWhatWasAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		x := start(t, &fakeServer{}, Config{Concurrency: 3, MaxInFlight: 20}, HandlerFunc(func(context.Context, Task) error {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(time.Second)
			now.Add(-1)
			return nil
		}))
		st := <-x.streams
		synctest.Wait()
		began := time.Now()
		st.deliver(ids(0, 12)...)
		time.Sleep(time.Minute)
		if most.Load() != 3 {
			t.Errorf("%d handlers at once, want 3", most.Load())
		}
		if _, _, acked, _, _ := st.books(); len(acked) != 12 {
			t.Errorf("%d acked after %v", len(acked), time.Since(began))
		}
	})
}

func TestOutcomesShareFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		x := start(t, &fakeServer{}, Config{Concurrency: 50}, HandlerFunc(func(context.Context, Task) error {
			<-release
			return nil
		}))
		st := <-x.streams
		synctest.Wait()
		st.deliver(ids(0, 50)...)
		synctest.Wait()
		close(release)
		synctest.Wait()
		st.mu.Lock()
		defer st.mu.Unlock()
		if len(st.acked) != 50 || st.frames > 25 {
			t.Errorf("%d acks in %d frames", len(st.acked), st.frames)
		}
	})
}

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
			{TaskId: "b", HoldToken: []byte(token("b"))}, {TaskId: "z", HoldToken: []byte(token("z"))}, {TaskId: "a", HoldToken: []byte(token("a"))},
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

func TestStopFinishesWhatRunsAndGivesBackWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := start(t, &fakeServer{}, Config{Concurrency: 2, MaxInFlight: 10}, HandlerFunc(func(ctx context.Context, _ Task) error {
			time.Sleep(10 * time.Second)
			return ctx.Err()
		}))
		st := <-x.streams
		synctest.Wait()
		st.deliver(ids(0, 5)...)
		time.Sleep(time.Second)
		x.stop()
		synctest.Wait()
		_, _, acked, nacked, _ := st.books()
		if len(acked) != 0 || len(nacked) != 3 {
			t.Errorf("at once: acked %v, nacked %v, want 3 given back", acked, nacked)
		}
		for _, n := range nacked {
			if !n.GetRelease() || n.DelayMs == nil || n.GetDelayMs() != 0 {
				t.Errorf("gave back as %v", n)
			}
		}
		st.deliver("t9") // under way when the worker stopped
		began := time.Now()
		if err := x.end(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != 9*time.Second {
			t.Errorf("Run returned after %v", took)
		}
		if got := x.w.Stats().Disconnected; got != 0 {
			t.Errorf("%d disconnections, but the end was meant", got)
		}
		credit, held, acked, nacked, _ := st.books()
		if held != 0 || len(acked) != 2 || len(nacked) != 4 || credit != 4 {
			t.Errorf("in the end: %d held, acked %v, nacked %v, credit %d", held, acked, nacked, credit)
		}
	})
}

func TestGraceEndsInCancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := start(t, &fakeServer{}, Config{Grace: 5 * time.Second}, HandlerFunc(func(ctx context.Context, _ Task) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}))
		st := <-x.streams
		synctest.Wait()
		st.deliver("a")
		synctest.Wait()
		began := time.Now()
		if err := x.end(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("Run returned after %v", took)
		}
		if _, _, _, nacked, _ := st.books(); len(nacked) != 1 || !nacked[0].GetRelease() {
			t.Errorf("got %v, want a release: it was not the task's fault", nacked)
		}
	})
}

func TestRunDoesNotWaitForHandlersThatIgnoreTheirContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := start(t, &fakeServer{}, Config{Grace: -1}, HandlerFunc(func(context.Context, Task) error {
			time.Sleep(time.Hour)
			return nil
		}))
		st := <-x.streams
		synctest.Wait()
		st.deliver("a")
		synctest.Wait()
		if err := x.end(); err == nil || !strings.Contains(err.Error(), "1 handlers did not return") {
			t.Errorf("got %v", err)
		}
		time.Sleep(2 * time.Hour)
	})
}

// Deliveries that cross the worker's goodbye are given back by other means.
func TestLateDeliveriesAreGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{goodbye: func(st *fakeStream) {
			st.send(&ddqv1.SubscribeResponse{Deliveries: []*ddqv1.Delivery{delivery("mail", "late")}})
		}}
		x := start(t, f, Config{}, HandlerFunc(ok))
		<-x.streams
		synctest.Wait()
		if err := x.end(); err != nil {
			t.Error(err)
		}
		select {
		case n := <-f.nacks:
			if n.GetTaskId() != "late" || !n.GetRelease() {
				t.Errorf("got %v", n)
			}
		default:
			t.Error("not given back")
		}
		if got := x.w.Stats().Released; got != 1 {
			t.Errorf("%d released", got)
		}
	})
}

func TestBrokenStreamIsReplacedAndOutcomesSaidAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		f.results = func(st *fakeStream, r *ddqv1.SubscribeRequest) *ddqv1.Settled {
			if st == nil || f.count() == 1 {
				return nil // the answers of the first stream are lost
			}
			return accept(r)
		}
		release := make(chan struct{})
		x := start(t, f, Config{Concurrency: 4, MaxInFlight: 8}, HandlerFunc(func(_ context.Context, task Task) error {
			if task.ID == "t3" {
				<-release
			}
			if task.ID == "t2" {
				return errBoom
			}
			return nil
		}))
		first := <-x.streams
		synctest.Wait()
		first.deliver(ids(0, 4)...)
		synctest.Wait()
		first.end <- status.Error(codes.Unavailable, "restart")
		second := <-x.streams
		synctest.Wait()
		credit, _, acked, nacked, extends := second.books()
		slices.Sort(acked)
		if !slices.Equal(acked, []string{"t0", "t1"}) || len(nacked) != 1 || nacked[0].GetTaskId() != "t2" {
			t.Errorf("said again: acked %v, nacked %v", acked, nacked)
		}
		if credit != 7 {
			t.Errorf("granted %d with one task running, want 7", credit)
		}
		if extends != 1 {
			t.Errorf("%d extends, want the running task's hold confirmed", extends)
		}
		close(release)
		synctest.Wait()
		if _, _, acked, _, _ = second.books(); !slices.Contains(acked, "t3") {
			t.Errorf("acked %v: the handler's task was not settled on the new stream", acked)
		}
		if got := x.w.Stats(); got.Acked != 3 || got.Nacked != 1 || got.Lost != 0 || got.Connected != 2 || got.Disconnected != 1 {
			t.Errorf("stats %+v", got)
		}
	})
}

// An outcome that is said again finds its hold gone when the first one arrived.
// If the hold had run out meanwhile, nobody can tell, and it counts as lost.
func TestRepeatedOutcomeThatFindsNoHoldWasAccepted(t *testing.T) {
	for name, c := range map[string]struct {
		outcome error
		away    time.Duration // without a stream
		want    Stats
	}{
		"ack":      {nil, time.Second, Stats{Received: 1, Acked: 1}},
		"nack":     {errBoom, time.Second, Stats{Received: 1, Nacked: 1}},
		"too late": {nil, fakeHold, Stats{Received: 1, Lost: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeServer{}
				began := time.Now()
				f.greet = func(n int, _ *ddqv1.Hello) error {
					if n > 1 && time.Since(began) < c.away {
						return status.Error(codes.Unavailable, "restart")
					}
					return nil
				}
				f.results = func(_ *fakeStream, r *ddqv1.SubscribeRequest) *ddqv1.Settled {
					if f.count() == 1 {
						return nil
					}
					return &ddqv1.Settled{Sequence: r.GetSequence(), Results: []*ddqv1.SettleResult{
						{HoldToken: []byte(token("a")), Error: &ddqv1.Error{Code: int32(codes.FailedPrecondition), Reason: "HOLD_LOST"}},
					}}
				}
				x := start(t, f, Config{}, HandlerFunc(func(context.Context, Task) error { return c.outcome }))
				st := <-x.streams
				synctest.Wait()
				st.deliver("a")
				synctest.Wait()
				st.end <- status.Error(codes.Unavailable, "restart")
				<-x.streams
				synctest.Wait()
				got := x.w.Stats()
				got.Connected, got.Disconnected = 0, 0
				if got != c.want {
					t.Errorf("got %+v, want %+v", got, c.want)
				}
			})
		})
	}
}

func TestOutcomesAreSaidAgainAfterAPassingFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		tries := 0
		f.results = func(_ *fakeStream, r *ddqv1.SubscribeRequest) *ddqv1.Settled {
			if tries++; tries == 3 {
				return accept(r)
			}
			return &ddqv1.Settled{Sequence: r.GetSequence(), Results: []*ddqv1.SettleResult{
				{HoldToken: []byte(token("a")), Error: &ddqv1.Error{Code: int32(codes.Unavailable), RetryAfterMs: 1000}},
			}}
		}
		x := start(t, f, Config{}, HandlerFunc(ok))
		st := <-x.streams
		synctest.Wait()
		st.deliver("a")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := x.w.Stats(); tries != 3 || got.Acked != 1 || got.Lost != 0 {
			t.Errorf("%d tries, stats %+v", tries, got)
		}
	})
}

func TestDrainMovesToAnotherStreamWhileHandlersRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		f.greet = func(n int, _ *ddqv1.Hello) error {
			if n == 2 {
				return status.Error(codes.Unavailable, "draining")
			}
			return nil
		}
		release := map[string]chan struct{}{"t0": make(chan struct{}), "t1": make(chan struct{})}
		x := start(t, f, Config{Concurrency: 2, MaxInFlight: 6}, HandlerFunc(func(_ context.Context, task Task) error {
			<-release[task.ID]
			return nil
		}))
		first := <-x.streams
		synctest.Wait()
		first.deliver("t0", "t1", "t2")
		synctest.Wait()
		first.send(&ddqv1.SubscribeResponse{Drain: &ddqv1.Drain{GraceMs: 60000}})
		synctest.Wait()
		if _, _, _, nacked, _ := first.books(); len(nacked) != 1 || !nacked[0].GetRelease() || nacked[0].GetTaskId() != "t2" {
			t.Errorf("gave back %v, want t2, which waited", nacked)
		}
		close(release["t0"])
		synctest.Wait()
		if credit, _, acked, _, _ := first.books(); !slices.Equal(acked, []string{"t0"}) || credit != 3 {
			t.Errorf("on the draining stream: acked %v, credit %d, want t0 and no new credit", acked, credit)
		}
		second := <-x.streams
		synctest.Wait()
		if credit, _, _, _, _ := second.books(); credit != 5 { // t1 runs
			t.Errorf("granted %d on the new stream, want 5", credit)
		}
		close(release["t1"])
		synctest.Wait()
		if _, _, acked, _, _ := second.books(); !slices.Equal(acked, []string{"t1"}) {
			t.Errorf("on the new stream: acked %v", acked)
		}
		if got := x.w.Stats(); got.Acked != 2 || got.Released != 1 || got.Lost != 0 {
			t.Errorf("stats %+v", got)
		}
	})
}

// A server that drains is not kept waiting by a worker that holds nothing.
func TestDrainedStreamIsClosedWhenNothingIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left := make(chan time.Time, 9)
		f := &fakeServer{goodbye: func(*fakeStream) { left <- time.Now() }}
		f.greet = func(n int, _ *ddqv1.Hello) error {
			if n > 1 {
				return status.Error(codes.Unavailable, "draining")
			}
			return nil
		}
		x := start(t, f, Config{}, HandlerFunc(func(context.Context, Task) error {
			time.Sleep(3 * time.Second)
			return nil
		}))
		st := <-x.streams
		synctest.Wait()
		st.deliver("a")
		synctest.Wait() // it runs: one that waits would be given back
		began := time.Now()
		st.send(&ddqv1.SubscribeResponse{Drain: &ddqv1.Drain{GraceMs: 60000}})
		if took := (<-left).Sub(began); took != 3*time.Second {
			t.Errorf("closed after %v, the last handler took 3s", took)
		}
		if _, _, acked, _, _ := st.books(); !slices.Equal(acked, []string{"a"}) {
			t.Errorf("acked %v", acked)
		}
	})
}

func TestReconnectPausesGrowAndDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var at []time.Time
		f := &fakeServer{greet: func(int, *ddqv1.Hello) error {
			mu.Lock()
			defer mu.Unlock()
			at = append(at, time.Now())
			return status.Error(codes.Unavailable, "not now")
		}}
		start(t, f, Config{}, HandlerFunc(ok))
		time.Sleep(10 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		pauses := map[time.Duration]bool{}
		for i := range at[1:] {
			pause := at[i+1].Sub(at[i])
			pauses[pause] = true
			if i == 0 && pause > 200*time.Millisecond || pause > 10*time.Second {
				t.Errorf("pause %d was %v", i, pause)
			}
		}
		if n := len(at); n < 60 || n > 400 { // about every 5 s
			t.Errorf("%d tries in 10 minutes", n)
		}
		if len(pauses) < len(at)/2 {
			t.Errorf("only %d different pauses in %d", len(pauses), len(at)-1)
		}
	})
}

func TestRefusedSubscriptionEndsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{greet: func(_ int, h *ddqv1.Hello) error {
			if h.GetTopic() == "b" {
				return status.Error(codes.InvalidArgument, "bad topic")
			}
			return nil
		}}
		mux := NewMux()
		mux.AddFunc("a", ok)
		mux.AddFunc("b", ok)
		x := start(t, f, Config{}, mux)
		err := <-x.ran
		x.ran <- nil
		if status.Code(errors.Unwrap(err.(interface{ Unwrap() []error }).Unwrap()[0])) != codes.InvalidArgument || !strings.Contains(err.Error(), "topic b") {
			t.Errorf("got %v", err)
		}
		if err := x.w.Run(t.Context()); err == nil {
			t.Error("ran twice")
		}
	})
}

func TestSilentServerIsLeftForAnotherTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		f := &fakeServer{greet: func(n int, _ *ddqv1.Hello) error {
			if n == 1 {
				<-hang
			}
			return nil
		}}
		x := start(t, f, Config{}, HandlerFunc(ok))
		began := time.Now()
		<-x.streams
		if took := time.Since(began); took > connectTimeout+200*time.Millisecond {
			t.Errorf("connected after %v", took)
		}
		close(hang)
	})
}

func TestMuxRunsTheHandlerOfTheTopicInsideMiddleware(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var calls []string
		note := func(s string) { mu.Lock(); calls = append(calls, s); mu.Unlock() }
		around := func(name string) Middleware {
			return func(next Handler) Handler {
				return HandlerFunc(func(ctx context.Context, task Task) error {
					note(name)
					return next.Handle(ctx, task)
				})
			}
		}
		mux := NewMux()
		mux.AddFunc("mail", func(context.Context, Task) error { note("mail"); return nil })
		mux.AddFunc("video", func(context.Context, Task) error { note("video"); return nil })
		x := start(t, &fakeServer{}, Config{Middleware: []Middleware{around("outer"), around("inner")}}, mux)
		for range 2 {
			st := <-x.streams
			synctest.Wait()
			st.deliver("a")
			synctest.Wait()
			want := []string{"outer", "inner", st.hello.GetTopic()}
			if !slices.Equal(calls, want) {
				t.Errorf("calls %v, want %v", calls, want)
			}
			calls = nil
		}
	})
}

func TestDeliveriesWithoutCreditAreGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		x := start(t, &fakeServer{}, Config{Concurrency: 1, MaxInFlight: 2}, HandlerFunc(func(context.Context, Task) error {
			<-release
			return nil
		}))
		st := <-x.streams
		synctest.Wait()
		st.deliver("t0", "t1")
		synctest.Wait()
		m := &ddqv1.SubscribeResponse{}
		for _, id := range ids(2, 6) {
			m.Deliveries = append(m.Deliveries, delivery("mail", id))
		}
		st.send(m)
		synctest.Wait()
		_, _, _, nacked, _ := st.books()
		if len(nacked) < 3 { // the queue may have room for one, since one runs
			t.Errorf("gave back %v", nacked)
		}
		close(release)
	})
}

func (f *fakeServer) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.opened
}
