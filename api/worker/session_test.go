package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/ddqv1"
)

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

// An outcome that the server refused for a while was not accepted, whatever becomes of the hold then; and where
// the topic is gone, nobody can tell.
func TestRefusedOutcomeThatFindsNoHoldIsLost(t *testing.T) {
	full := &ddqv1.Error{Code: int32(codes.ResourceExhausted), Reason: "OUTBOX_FULL", RetryAfterMs: 1000}
	down := &ddqv1.Error{Code: int32(codes.Unavailable), Reason: "STORE_DOWN", RetryAfterMs: 1000}
	for name, answers := range map[string][2]*ddqv1.Error{
		"the outbox was full": {full, {Code: int32(codes.FailedPrecondition), Reason: "HOLD_LOST"}},
		"the topic is gone":   {down, {Code: int32(codes.NotFound), Reason: "NO_TOPIC"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, said := &fakeServer{}, 0
				f.results = func(_ *fakeStream, r *ddqv1.SubscribeRequest) *ddqv1.Settled {
					said++
					return &ddqv1.Settled{Sequence: r.GetSequence(), Results: []*ddqv1.SettleResult{{HoldToken: []byte(holdToken("a")), Error: answers[min(said, 2)-1]}}}
				}
				x := start(t, f, Config{}, HandlerFunc(ok))
				st := <-x.streams
				synctest.Wait()
				st.deliver("a")
				time.Sleep(2 * time.Second)
				if got := x.w.Stats(); got.Acked != 0 || got.Lost != 1 {
					t.Errorf("stats %+v", got)
				}
			})
		})
	}
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
						{HoldToken: []byte(holdToken("a")), Error: &ddqv1.Error{Code: int32(codes.FailedPrecondition), Reason: "HOLD_LOST"}},
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

// TestHoldsOfPostponedOutcomesAreExtended: the outbox of a topic is full for longer than a hold lasts.
func TestHoldsOfPostponedOutcomesAreExtended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		began, ran, lapsed := time.Now(), 0, false
		f.results = func(st *fakeStream, r *ddqv1.SubscribeRequest) *ddqv1.Settled {
			st.mu.Lock()
			defer st.mu.Unlock()
			lapsed = lapsed || !st.ends.IsZero() && time.Now().After(st.ends)
			if st.ends.IsZero() || len(r.GetExtends()) > 0 {
				st.ends = time.Now().Add(fakeHold)
			}
			answer := accept(r)
			if time.Since(began) > 10*time.Minute {
				return answer
			}
			for _, a := range r.GetAcks() {
				answer.Results = append(answer.Results, &ddqv1.SettleResult{
					HoldToken: a.GetHoldToken(), Error: &ddqv1.Error{Code: int32(codes.ResourceExhausted), Reason: "OUTBOX_FULL", RetryAfterMs: 1000},
				})
			}
			return answer
		}
		x := start(t, f, Config{}, HandlerFunc(func(context.Context, Task) error {
			ran++
			return nil
		}))
		st := <-x.streams
		synctest.Wait()
		st.deliver("a")
		time.Sleep(11 * time.Minute)
		synctest.Wait()
		if got := x.w.Stats(); lapsed || ran != 1 || got.Acked != 1 || got.Lost != 0 {
			t.Errorf("the hold lapsed: %t, the handler ran %d times, stats %+v", lapsed, ran, got)
		}
	})
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
				{HoldToken: []byte(holdToken("a")), Error: &ddqv1.Error{Code: int32(codes.Unavailable), RetryAfterMs: 1000}},
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
			if i == 0 && pause > longestPause/4 || pause > longestPause {
				t.Errorf("pause %d was %v", i, pause)
			}
		}
		if n := len(at); n < 2000 || n > 4500 { // about every 0.2 s
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

func (f *fakeServer) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.opened
}

// TestTasksKeepWhatTheyCameWith has frames of the same sizes come one after the other: a session
// reads each into the memory of the one before.
func TestTasksKeepWhatTheyCameWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		frame := func(fill byte) (all []*ddqv1.Delivery) {
			body := func() []byte { return bytes.Repeat([]byte{fill}, 8) }
			for i := range 3 {
				d := delivery("mail", fmt.Sprintf("%c%d", fill, i))
				d.Task.Payload, d.Task.Schedule, d.Task.Recipient, d.Task.RecipientData = body(), string(body()), string(body()), body()
				d.Task.Attributes = []*ddqv1.Attribute{{Key: "k", Value: string(body())}}
				d.Task.Step = &ddqv1.TaskStep{Workflow: string(body()), Input: body()}
				d.Task.Inputs = []*ddqv1.StepInput{{Step: string(body()), Result: body()}}
				all = append(all, d)
			}
			return all
		}
		var mu sync.Mutex
		var got []Task
		x := start(t, &fakeServer{}, Config{Concurrency: 4, MaxInFlight: 8}, HandlerFunc(func(_ context.Context, task Task) error {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, task)
			return nil
		}))
		st := <-x.streams
		synctest.Wait()
		for _, fill := range []byte("abc") {
			st.sendTasks(frame(fill)...)
			synctest.Wait()
		}
		if len(got) != 9 {
			t.Fatalf("got %d tasks, want 9", len(got))
		}
		for _, task := range got {
			if string(task.HoldToken) != holdToken(task.ID) {
				t.Errorf("token of task %s is %q", task.ID, task.HoldToken)
			}
			want := strings.Repeat(task.ID[:1], 8)
			for name, is := range map[string]string{
				"payload": string(task.Payload), "attribute": task.Attributes["k"], "schedule": task.Run.Schedule,
				"recipient": task.Run.Recipient, "data": string(task.Run.RecipientData), "workflow": task.Step.Workflow, "input": string(task.Step.Input),
				"step": task.Step.Inputs[0].Step, "result": string(task.Step.Inputs[0].Result),
			} {
				if is != want {
					t.Errorf("%s of task %s is %q, want %q", name, task.ID, is, want)
				}
			}
		}
		if err := x.end(); err != nil {
			t.Error(err)
		}
	})
}

// Credentials that counted may not for a moment: their successors are late. That ends no worker, as no
// end of a stream does; credentials that never counted do, and those that are not renewed.
func TestCredentialsThatCountedAreWaitedFor(t *testing.T) {
	denied := status.Error(codes.Unauthenticated, "the credentials are not valid")
	for name, c := range map[string]struct {
		from, until int // of the attempts to connect, those that are refused
		end         error
		ends        bool
	}{
		"from the first":       {from: 1, until: 1, ends: true},
		"for a moment":         {from: 2, until: 3, end: denied},
		"for good":             {from: 2, until: 1 << 30, end: denied, ends: true},
		"the stream is broken": {from: 0, until: 0, end: status.Error(codes.InvalidArgument, "bad frame")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeServer{}
				f.greet = func(n int, _ *ddqv1.Hello) error {
					if n >= c.from && n <= c.until {
						return denied
					}
					return nil
				}
				x := start(t, f, Config{}, HandlerFunc(func(context.Context, Task) error { return nil }))
				began := time.Now()
				if c.from != 1 {
					(<-x.streams).end <- c.end
				}
				if c.ends {
					err := <-x.ran
					x.ran <- nil // for the cleanup
					if took := time.Since(began); !strings.Contains(err.Error(), "not valid") || (c.from == 1) != (took < time.Second) || took > credentialsGrace+topicPause {
						t.Errorf("after %v: %v", took, err)
					}
					return
				}
				st := <-x.streams
				synctest.Wait()
				st.deliver("a")
				synctest.Wait()
				if _, _, acked, _, _ := st.books(); len(acked) != 1 {
					t.Errorf("acked %v", acked)
				}
			})
		})
	}
}
