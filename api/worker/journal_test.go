package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// notebook is the journal of one task at a server, which keeps what it is told unless it is to fail.
type notebook struct {
	mu      sync.Mutex
	entries map[string][]byte
	calls   int
	fail    func(call int) error // nil: it keeps all
}

func (n *notebook) checkpoint(c *ddqv1.Checkpoint) (*ddqv1.CheckpointResponse, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls++
	if n.fail != nil {
		if err := n.fail(n.calls); err != nil {
			return nil, err
		}
	}
	if string(c.GetHoldToken()) != holdToken(c.GetTaskId()) {
		return nil, status.Errorf(codes.FailedPrecondition, "token %q", c.GetHoldToken())
	}
	if n.entries == nil {
		n.entries = make(map[string][]byte)
	}
	_, already := n.entries[c.GetName()]
	if !already {
		n.entries[c.GetName()] = c.GetValue()
	}
	return &ddqv1.CheckpointResponse{Already: already}, nil
}

// journal is what comes with the next delivery.
func (n *notebook) journal() (entries []*ddqv1.JournalEntry) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, value := range n.entries {
		entries = append(entries, &ddqv1.JournalEntry{Name: name, Value: value})
	}
	return entries
}

func (n *notebook) called() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.calls
}

// attempts delivers a task again and again until its handler returns nil, and returns what the
// server was told of the attempts before.
func attempts(t *testing.T, n *notebook, most int, handle func(ctx context.Context, task Task) error) (nacks []*ddqv1.Nack) {
	t.Helper()
	x := start(t, &fakeServer{checkpoint: n.checkpoint}, Config{}, HandlerFunc(handle))
	st := <-x.streams
	synctest.Wait()
	for i := range most {
		d := delivery("mail", "a")
		d.Task.RetryCount, d.Journal = int32(i), n.journal()
		st.sendTasks(d)
		time.Sleep(time.Minute)
		_, _, acked, nacked, _ := st.books()
		if len(acked) > 0 {
			return nacked
		}
	}
	_, _, _, nacks, _ = st.books()
	return nacks
}

func TestOnceRunsUntilItSucceedsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := map[string]int{}
		once := func(ctx context.Context, task Task, name string, fails int) (string, error) {
			value, err := task.Once(ctx, name, func(context.Context) ([]byte, error) {
				if ran[name]++; ran[name] <= fails {
					return nil, errBoom
				}
				return fmt.Appendf(nil, "%s in attempt %d", name, task.Attempt), nil
			})
			return string(value), err
		}
		var got []string
		nacks := attempts(t, new(notebook), 5, func(ctx context.Context, task Task) error {
			charge, err := once(ctx, task, "charge", 1)
			if err != nil {
				return err
			}
			ship, err := once(ctx, task, "ship", 1)
			got = append(got, charge, ship)
			return err
		})
		if want := map[string]int{"charge": 2, "ship": 2}; !maps.Equal(ran, want) || len(nacks) != 2 {
			t.Errorf("names ran %v with %d failures, want %v with 2", ran, len(nacks), want)
		}
		if want := "[charge in attempt 2  charge in attempt 2 ship in attempt 3]"; fmt.Sprint(got) != want {
			t.Errorf("got %v, want %s", got, want)
		}
	})
}

func TestANameIsUsedOnceInAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := new(notebook)
		for range 2 { // in the first attempt, and in one that remembers it
			nacks := attempts(t, n, 1, func(ctx context.Context, task Task) error {
				if err := task.Checkpoint(ctx, "n", []byte("v")); err != nil {
					return err
				}
				if err := task.Sleep(ctx, "n", time.Hour); !errors.Is(err, ErrNameUsed) {
					t.Errorf("the second use of a name: %v", err)
				}
				if value, known := task.Remembered("n"); !known || string(value) != "v" {
					t.Errorf("remembered %q, %v", value, known)
				}
				if _, known := task.Remembered("other"); known {
					t.Error("a name that was never used is remembered")
				}
				for _, name := range []string{"", strings.Repeat("n", MaxName+1), "\xff"} {
					if err := task.Checkpoint(ctx, name, nil); err == nil {
						t.Errorf("the name %q is taken", name)
					}
				}
				if err := task.Checkpoint(ctx, "large", make([]byte, MaxValue+1)); err == nil {
					t.Error("a large value is taken")
				}
				return nil
			})
			if len(nacks) != 0 {
				t.Errorf("failed: %v", nacks)
			}
		}
		if n.called() != 1 {
			t.Errorf("the server was called %d times, want once", n.called())
		}
	})
}

func TestNamesOfOneHandlerRunBesideEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const names = 50
		n := &notebook{}
		attempts(t, n, 1, func(ctx context.Context, task Task) error {
			var all sync.WaitGroup
			began := time.Now()
			for i := range names {
				all.Go(func() {
					value, err := task.Once(ctx, fmt.Sprint(i), func(context.Context) ([]byte, error) {
						time.Sleep(time.Second)
						return fmt.Append(nil, i), nil
					})
					if err != nil || string(value) != fmt.Sprint(i) {
						t.Errorf("%d returned %q, %v", i, value, err)
					}
				})
			}
			all.Wait()
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("took %v", took)
			}
			return nil
		})
		if len(n.journal()) != names {
			t.Errorf("%d names are kept, want %d", len(n.journal()), names)
		}
	})
}

func TestSleepGivesTheTaskBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, began, woke := new(notebook), time.Now(), time.Duration(0)
		nacks := attempts(t, n, 10, func(ctx context.Context, task Task) error {
			if err := task.Sleep(ctx, "cool down", 3*time.Minute); err != nil {
				return err
			}
			woke = time.Since(began)
			return nil
		})
		if len(nacks) != 3 || woke < 3*time.Minute || woke > 4*time.Minute {
			t.Fatalf("given back %d times, and awake after %v", len(nacks), woke)
		}
		left := 3 * time.Minute
		for i, nack := range nacks { // it was delivered each minute, which a server would not do
			if got := time.Duration(nack.GetDelayMs()) * time.Millisecond; !nack.GetRelease() || got > left || got < left-time.Second {
				t.Errorf("given back at try %d: %v, want a release for %v", i, nack, left)
			}
			left -= time.Minute
		}
		if n.called() != 1 {
			t.Errorf("the server was called %d times, want once", n.called())
		}
	})
}

// TestSleepGoesByTheServersClock: the clocks of workers that have the attempts of one task differ.
func TestSleepGoesByTheServersClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, awake := new(notebook), 0
		x := start(t, &fakeServer{checkpoint: n.checkpoint}, Config{}, HandlerFunc(func(ctx context.Context, task Task) error {
			if err := task.Sleep(ctx, "cool down", time.Hour); err != nil {
				return err
			}
			awake = task.Attempt
			return nil
		}))
		st := <-x.streams
		synctest.Wait()
		for i, server := range []struct{ ahead, left time.Duration }{
			{-5 * time.Minute, time.Hour},
			{-26 * time.Hour, 26*time.Hour + 55*time.Minute}, // the server's clock was set back
			{25 * time.Minute, 30 * time.Minute},
			{55 * time.Minute, 0},
		} {
			st.ahead = server.ahead
			d := delivery("mail", "a")
			d.Task.RetryCount, d.Journal = int32(i), n.journal()
			st.sendTasks(d)
			synctest.Wait()
			_, _, acked, nacked, _ := st.books()
			if server.left == 0 {
				if awake != i+1 || len(acked) == 0 {
					t.Fatalf("attempt %d still sleeps: %v", i+1, nacked)
				}
				continue
			}
			if awake != 0 || len(nacked) == 0 {
				t.Fatalf("attempt %d is awake", i+1)
			}
			if got := nacked[len(nacked)-1]; !got.GetRelease() || time.Duration(got.GetDelayMs())*time.Millisecond != server.left {
				t.Errorf("attempt %d is given back for %d ms, want %v", i+1, got.GetDelayMs(), server.left)
			}
		}
	})
}

func TestCheckpointIsSaidAgainUntilItIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &notebook{fail: func(call int) error {
			if call <= 3 {
				return status.Error([]codes.Code{codes.Unavailable, codes.Unknown}[call%2], "not now")
			}
			return nil
		}}
		nacks := attempts(t, n, 1, func(ctx context.Context, task Task) error { return task.Checkpoint(ctx, "n", nil) })
		if len(nacks) != 0 || n.called() != 4 || len(n.journal()) != 1 {
			t.Errorf("said %d times, kept %d, failed %v", n.called(), len(n.journal()), nacks)
		}
	})
}

func TestCheckpointsGoTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tasks = 50
		var begun sync.WaitGroup
		begun.Add(tasks)
		var n notebook
		x := start(t, &fakeServer{checkpoint: n.checkpoint}, Config{Concurrency: tasks}, HandlerFunc(func(ctx context.Context, task Task) error {
			begun.Done()
			begun.Wait()
			return task.Checkpoint(ctx, "of "+task.ID, make([]byte, MaxValue/16))
		}))
		st := <-x.streams
		synctest.Wait()
		for i := range tasks {
			st.deliver(fmt.Sprint(i))
		}
		time.Sleep(time.Minute)
		_, _, acked, _, _ := st.books()
		if len(acked) != tasks || len(n.journal()) != tasks || x.called != 0 {
			t.Errorf("%d tasks ended, %d values are kept, %d calls", len(acked), len(n.journal()), x.called)
		}
		if st.frames > tasks {
			t.Errorf("%d frames for as many acks and checkpoints of %d tasks", st.frames, tasks)
		}
	})
}

func TestACheckpointOutlivesItsStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n notebook
		f := &fakeServer{checkpoint: n.checkpoint}
		f.results = func(st *fakeStream, r *ddqv1.SubscribeRequest) *ddqv1.Settled {
			if len(r.GetCheckpoints()) == 0 {
				return accept(r)
			}
			st.end <- status.Error(codes.Unavailable, "gone") // what it kept, nobody hears
			return nil
		}
		var failed error
		x := start(t, f, Config{}, HandlerFunc(func(ctx context.Context, task Task) error {
			failed = task.Checkpoint(ctx, "n", []byte("v"))
			return nil
		}))
		st := <-x.streams
		synctest.Wait()
		st.deliver("a")
		again := <-x.streams
		time.Sleep(time.Minute)
		_, _, acked, _, _ := again.books()
		if failed != nil || len(acked) != 1 || n.called() != 2 || len(n.journal()) != 1 {
			t.Errorf("error %v, %d acks, said %d times, %d values", failed, len(acked), n.called(), len(n.journal()))
		}
	})
}

func TestALostHoldKeepsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost, err := status.New(codes.FailedPrecondition, "lost").WithDetails(&errdetails.ErrorInfo{Reason: "HOLD_LOST", Domain: "ddq"})
		if err != nil {
			t.Fatal(err)
		}
		full := status.Error(codes.ResourceExhausted, "full")
		n := &notebook{fail: func(call int) error { return []error{lost.Err(), full}[(call-1)/2] }} // on the stream, and by a call
		attempts(t, n, 1, func(ctx context.Context, task Task) error {
			if err := task.Checkpoint(ctx, "a", nil); !errors.Is(err, ErrHoldLost) {
				t.Errorf("a stale attempt gets %v", err)
			}
			if err := task.Checkpoint(ctx, "b", nil); status.Code(err) != codes.ResourceExhausted {
				t.Errorf("a full journal gets %v", err)
			}
			return nil
		})
	})
}

func TestHandlersWithAJournalAreTestedWithoutAServer(t *testing.T) {
	ran := 0
	pay := func(context.Context) ([]byte, error) { ran++; return []byte("paid"), nil }
	handle := func(ctx context.Context, task Task) error {
		got, err := task.Once(ctx, "charge", pay)
		if err != nil {
			return err
		}
		return task.SetResult(got)
	}
	first := NewTask(Task{})
	again := NewTask(Task{Attempt: 2}).Resumed(map[string][]byte{"charge": []byte("paid before")})
	for task, want := range map[*Task]string{&first: "paid", &again: "paid before"} {
		if err := handle(t.Context(), *task); err != nil || string(task.Result()) != want {
			t.Errorf("attempt %d returned %q, %v, want %q", task.Attempt, task.Result(), err, want)
		}
	}
	if value, _ := first.Remembered("charge"); ran != 1 || string(value) != "paid" {
		t.Errorf("ran %d times, and remembers %q", ran, value)
	}
}
