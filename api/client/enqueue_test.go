package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/ddqv1"
)

func TestEnqueueReturnsTheServersReceipt(t *testing.T) {
	for _, unary := range []bool{false, true} {
		t.Run(fmt.Sprintf("unary=%v", unary), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeServer{}
				c := start(t, f, Config{Unary: unary})
				now := time.Now()
				r, err := c.Enqueue(t.Context(), Task{
					Topic: "mail", Payload: []byte("hello"), Delay: time.Second,
					Attributes: map[string]string{"b": "2", "a": "1"}, MaxRetries: new(0),
					VisibilityTimeout: time.Minute, HandlerTimeout: time.Second, ExpireAfter: time.Hour,
					Backoff: &Backoff{Kind: BackoffLinear, Base: time.Second},
				})
				if err != nil {
					t.Fatal(err)
				}
				if r.Topic != "mail" || len(r.ID) != 36 || !r.Due.Equal(now.Add(time.Second)) || r.Deduplicated {
					t.Errorf("got %+v", r)
				}
				got := f.ids()[r.ID]
				want := `topic:"mail"  id:"` + r.ID + `"  payload:"hello"  delay:{seconds:1}  ` +
					`attributes:{key:"a"  value:"1"}  attributes:{key:"b"  value:"2"}  max_retries:0  visibility_timeout_ms:60000  ` +
					`backoff:{kind:BACKOFF_KIND_LINEAR  base_ms:1000}  expire_after:{seconds:3600}  handler_timeout_ms:1000`
				if squeeze(got.String()) != squeeze(want) {
					t.Errorf("got  %v\nwant %v", got, want)
				}
			})
		})
	}
}

// squeeze undoes the spacing that the library varies on purpose.
func squeeze(s string) string { return strings.ReplaceAll(s, " ", "") }

// A pooled request must not leak fields of the task that used it before.
func TestRequestsAreCleanWhenUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		c := start(t, f, Config{})
		full := Task{
			Topic: "mail", ID: "a", Payload: []byte("long payload"), Due: time.Unix(9, 0), MaxRetries: new(1),
			Attributes: map[string]string{"k": "v"}, Expires: time.Unix(99, 0), Backoff: &Backoff{Base: 1}, VisibilityTimeout: 1,
		}
		for range 10 {
			if _, err := c.Enqueue(t.Context(), full); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Enqueue(t.Context(), Task{Topic: "mail", ID: "b"}); err != nil {
				t.Fatal(err)
			}
			if got := f.ids()["b"].String(); squeeze(got) != `topic:"mail"id:"b"` {
				t.Fatalf("got %s", got)
			}
		}
	})
}

func TestConcurrentCallsGetTheirOwnAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		c := start(t, f, Config{})
		var all sync.WaitGroup
		for g := range 64 {
			all.Go(func() {
				for n := range 20 {
					id := fmt.Sprintf("%d-%d", g, n)
					r, err := c.Enqueue(t.Context(), Task{Topic: "mail", ID: id, Payload: []byte(id)})
					if err != nil || r.ID != id {
						t.Errorf("got %v, %v for %s", r, err, id)
					}
				}
			})
		}
		all.Wait()
		for id, r := range f.ids() {
			if string(r.GetPayload()) != id {
				t.Errorf("task %s has the payload of %s", id, r.GetPayload())
			}
		}
		if got := len(f.ids()); got != 1280 {
			t.Errorf("stored %d tasks, want 1280", got)
		}
		if f.streams != 1 || len(f.frames) == 1280 {
			t.Errorf("%d frames on %d streams: calls did not share frames", len(f.frames), f.streams)
		}
	})
}

func TestSmallFramesWaitForTheAnswerBeforeThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		release := make(chan struct{})
		f.answer = func(s *fakeStream, r *ddqv1.EnqueueStreamRequest) error {
			f.answer = nil
			<-release
			return s.Send(f.reply(r))
		}
		c := start(t, f, Config{})
		var all sync.WaitGroup
		began := time.Now()
		for n := range 5 {
			all.Go(func() {
				if _, err := c.Enqueue(t.Context(), Task{Topic: "mail", ID: fmt.Sprint(n)}); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		close(release)
		all.Wait()
		if !slices.Equal(f.frames, []int{1, 4}) || time.Since(began) != 0 {
			t.Errorf("frames %v after %v, want the other 4 with the first answer", f.frames, time.Since(began))
		}
	})
}

func TestLargeBatchesAreSplit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		c := start(t, f, Config{})
		tasks := make([]Task, 1500)
		for i := range tasks {
			tasks[i] = Task{Topic: "mail", ID: fmt.Sprint(i)}
		}
		results, err := c.EnqueueBatch(t.Context(), tasks)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range results {
			if r.ID != fmt.Sprint(i) || r.Due.IsZero() {
				t.Fatalf("result %d is %+v", i, r)
			}
		}
		if !slices.Equal(f.frames, []int{512, 512, 476}) {
			t.Errorf("frames %v", f.frames)
		}
		big := []Task{{Topic: "mail", Payload: make([]byte, 700<<10)}, {Topic: "mail", Payload: make([]byte, 700<<10)}}
		if _, err := c.EnqueueBatch(t.Context(), big); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(f.frames[3:], []int{1, 1}) {
			t.Errorf("frames by bytes %v", f.frames[3:])
		}
	})
}

func TestItemsOfABatchFailAlone(t *testing.T) {
	for _, unary := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := &fakeServer{judge: func(r *ddqv1.EnqueueRequest) *ddqv1.Error {
				if r.GetId() == "b" {
					return &ddqv1.Error{Code: int32(codes.AlreadyExists), Reason: "TASK_EXISTS", Message: "taken"}
				}
				return nil
			}}
			c := start(t, f, Config{Unary: unary})
			results, err := c.EnqueueBatch(t.Context(), []Task{
				{Topic: "mail", ID: "a"}, {Topic: "mail", ID: "b"},
				{Topic: "mail", ID: "c", Delay: 1, Due: time.Unix(1, 0)}, {Topic: "mail", ID: "d"},
			})
			if !errors.Is(err, ErrExists) {
				t.Errorf("got %v, want the first failure", err)
			}
			if results[0].Err != nil || results[3].Err != nil || results[3].ID != "d" {
				t.Errorf("got %+v", results)
			}
			if !errors.Is(results[1].Err, ErrExists) || !errors.Is(results[2].Err, ErrInvalid) {
				t.Errorf("got %v and %v", results[1].Err, results[2].Err)
			}
			if got := slices.Sorted(maps.Keys(f.ids())); !slices.Equal(got, []string{"a", "d"}) {
				t.Errorf("stored %v", got)
			}
		})
	}
}

func TestEmptyBatchIsNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		c := start(t, f, Config{})
		if results, err := c.EnqueueBatch(t.Context(), nil); err != nil || len(results) != 0 {
			t.Errorf("got %v, %v", results, err)
		}
		if f.streams != 0 {
			t.Error("opened a stream")
		}
	})
}

// The answer is lost with the stream after the task was stored: the client
// opens another and asks again under the same id.
func TestLostAnswersAreAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		f.answer = func(s *fakeStream, r *ddqv1.EnqueueStreamRequest) error {
			reply := f.reply(r)
			if s.number == 1 {
				return status.Error(codes.Unavailable, "connection lost")
			}
			return s.Send(reply)
		}
		c := start(t, f, Config{})
		var all sync.WaitGroup
		for range 30 {
			all.Go(func() {
				r, err := c.Enqueue(t.Context(), Task{Topic: "mail"})
				if err != nil || f.ids()[r.ID] == nil {
					t.Errorf("got %v, %v", r, err)
				}
			})
		}
		all.Wait()
		if got := len(f.ids()); got != 30 {
			t.Errorf("stored %d tasks for 30 calls", got)
		}
		if f.streams != 2 {
			t.Errorf("opened %d streams, want 2", f.streams)
		}
	})
}

func TestOnlyWhatFailedInPassingIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := map[string]int{}
		f := &fakeServer{}
		f.judge = func(r *ddqv1.EnqueueRequest) *ddqv1.Error {
			tries[r.GetId()]++
			switch {
			case r.GetId() == "busy" && tries["busy"] < 3:
				return &ddqv1.Error{Code: int32(codes.ResourceExhausted), RetryAfterMs: 1000}
			case r.GetId() == "unknown" && tries["unknown"] < 2:
				return &ddqv1.Error{Code: int32(codes.Unknown)}
			case r.GetId() == "full":
				return &ddqv1.Error{Code: int32(codes.ResourceExhausted)} // no time to come back
			}
			return nil
		}
		c := start(t, f, Config{})
		began := time.Now()
		results, _ := c.EnqueueBatch(t.Context(), []Task{
			{Topic: "mail", ID: "ok"}, {Topic: "mail", ID: "busy"}, {Topic: "mail", ID: "unknown"}, {Topic: "mail", ID: "full"},
		})
		want := map[string]int{"ok": 1, "busy": 3, "unknown": 2, "full": 1}
		if !maps.Equal(tries, want) {
			t.Errorf("tries %v, want %v", tries, want)
		}
		if results[0].Err != nil || results[1].Err != nil || results[2].Err != nil || !errors.Is(results[3].Err, ErrExhausted) {
			t.Errorf("got %+v", results)
		}
		if pause := time.Since(began); pause < 2*time.Second || pause > 3*time.Second+time.Millisecond {
			t.Errorf("came back after %v, want twice the asked second and up to a half", pause)
		}
	})
}

func TestRepeatingEndsWithTheDeadline(t *testing.T) {
	for _, unary := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := &fakeServer{judge: func(*ddqv1.EnqueueRequest) *ddqv1.Error {
				return &ddqv1.Error{Code: int32(codes.Unavailable), Message: "draining", Reason: "DRAINING"}
			}}
			c := start(t, f, Config{Timeout: 5 * time.Second, Unary: unary})
			began := time.Now()
			_, err := c.Enqueue(t.Context(), Task{Topic: "mail"})
			if !errors.Is(err, ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want both what failed and what ended it", err)
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("took %v, timeout is 5s", took)
			}
		})
	}
}

func TestNegativeMaxElapsedTurnsRepeatingOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		f := &fakeServer{judge: func(*ddqv1.EnqueueRequest) *ddqv1.Error {
			tries++
			return &ddqv1.Error{Code: int32(codes.Unavailable), RetryAfterMs: 1}
		}}
		c := start(t, f, Config{MaxElapsed: -1})
		if _, err := c.Enqueue(t.Context(), Task{Topic: "mail"}); !errors.Is(err, ErrUnavailable) {
			t.Errorf("got %v", err)
		}
		if tries != 1 {
			t.Errorf("tried %d times", tries)
		}
	})
}

func TestCallersLeaveAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		f.answer = func(*fakeStream, *ddqv1.EnqueueStreamRequest) error { return nil } // never
		c := start(t, f, Config{Timeout: time.Minute})
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := c.Enqueue(ctx, Task{Topic: "mail"})
			failed <- err
		}()
		synctest.Wait()
		began := time.Now()
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		results, err := c.EnqueueBatch(short, []Task{{Topic: "mail", ID: "a"}, {Topic: "mail", ID: "b"}})
		if !errors.Is(err, context.DeadlineExceeded) || results[1].ID != "b" || !errors.Is(results[1].Err, context.DeadlineExceeded) {
			t.Errorf("got %+v, %v", results, err)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("left after %v", took)
		}
	})
}

func TestCloseWaitsForAnswersAndRefusesMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		f.answer = func(s *fakeStream, r *ddqv1.EnqueueStreamRequest) error {
			time.Sleep(time.Second)
			return s.Send(f.reply(r))
		}
		c := start(t, f, Config{})
		answered := make(chan error, 1)
		go func() {
			_, err := c.Enqueue(t.Context(), Task{Topic: "mail"})
			answered <- err
		}()
		synctest.Wait()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		select {
		case err := <-answered:
			if err != nil {
				t.Errorf("enqueue under way got %v", err)
			}
		default:
			t.Error("Close did not wait")
		}
		if _, err := c.Enqueue(t.Context(), Task{Topic: "mail"}); !errors.Is(err, ErrClosed) {
			t.Errorf("after Close got %v", err)
		}
	})
}

func TestCloseGivesUpOnASilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		f.answer = func(*fakeStream, *ddqv1.EnqueueStreamRequest) error { return nil } // never
		c := start(t, f, Config{Timeout: 3 * time.Second})
		answered := make(chan error, 1)
		go func() {
			_, err := c.Enqueue(context.WithoutCancel(t.Context()), Task{Topic: "mail"})
			answered <- err
		}()
		synctest.Wait()
		began := time.Now()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("closed after %v", took)
		}
		if err := <-answered; err == nil {
			t.Error("enqueue was answered OK by nobody")
		}
	})
}

func TestUnreachableServerIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := startServer(t, &fakeServer{}, Config{Timeout: 4 * time.Second})
		server.Stop()
		if _, err := c.Enqueue(t.Context(), Task{Topic: "mail"}); !errors.Is(err, ErrUnavailable) {
			t.Errorf("enqueue got %v", err)
		}
		if _, err := c.Get(t.Context(), "mail", "a"); !errors.Is(err, ErrUnavailable) {
			t.Errorf("get got %v", err)
		}
	})
}

// The payload may be changed as soon as Enqueue returns, whatever it returned.
func TestPayloadIsCopied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		c := start(t, f, Config{})
		payload := []byte("before")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.Enqueue(ctx, Task{Topic: "mail", ID: "a", Payload: payload}); err == nil {
			t.Skip("answered before the cancellation was seen")
		}
		copy(payload, "after!")
		synctest.Wait()
		if r := f.ids()["a"]; r != nil && string(r.GetPayload()) != "before" {
			t.Errorf("stored %s", r.GetPayload())
		}
	})
}

// The context is asked for at each enqueue, and that of one task is in no other.
func TestTasksCarryTheTraceContextOfTheirCall(t *testing.T) {
	type key struct{}
	of := func(ctx context.Context) (parent, state string) {
		parent, _ = ctx.Value(key{}).(string)
		return parent, strings.Repeat("s", len(parent))
	}
	for _, unary := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := &fakeServer{}
			c := start(t, f, Config{Trace: of, Unary: unary})
			in := func(parent string) context.Context { return context.WithValue(t.Context(), key{}, parent) }
			for id, ctx := range map[string]context.Context{"a": in("p"), "b": t.Context(), "c": in("parent")} {
				if _, err := c.Enqueue(ctx, Task{Topic: "mail", ID: id}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := c.EnqueueBatch(in("batch"), []Task{{Topic: "mail", ID: "d"}, {Topic: "mail", ID: "e"}}); err != nil {
				t.Fatal(err)
			}
			for id, want := range map[string]string{"a": "p", "b": "", "c": "parent", "d": "batch", "e": "batch"} {
				if got := f.ids()[id]; got.Traceparent != want || len(got.Tracestate) != len(want) {
					t.Errorf("%s has %v", id, got)
				}
			}
		})
	}
}

// amid has good tasks, and one of each kind that is in their way: one that breaks the stream that it
// comes on, one that is too large for any message, and one that is refused.
func amid(good int) []Task {
	tasks := []Task{
		{Topic: "poison", ID: "poison"},
		{Topic: "mail", ID: "huge", Payload: make([]byte, 7<<20)},
		{Topic: "mail", ID: "refused"},
	}
	for n := range good {
		tasks = append(tasks, Task{Topic: "mail", ID: fmt.Sprint("good-", n)})
	}
	return tasks
}

// judgeAmid answers what amid returns.
func judgeAmid(f *fakeServer) {
	bad := func(r *ddqv1.EnqueueRequest) bool { return r.GetTopic() == "poison" }
	f.judge = func(r *ddqv1.EnqueueRequest) *ddqv1.Error {
		switch {
		case bad(r):
			return &ddqv1.Error{Code: int32(codes.InvalidArgument), Reason: "POISON"}
		case r.GetId() == "refused":
			return &ddqv1.Error{Code: int32(codes.ResourceExhausted), Reason: "BACKLOG_FULL"}
		}
		return nil
	}
	f.answer = func(s *fakeStream, r *ddqv1.EnqueueStreamRequest) error {
		_ = s.SendHeader(nil)
		if slices.ContainsFunc(r.GetTasks(), bad) {
			for _, t := range r.GetTasks() {
				if !bad(t) {
					f.store(t) // done, and nobody is told
				}
			}
			return status.Error(codes.ResourceExhausted, "the message is too large")
		}
		return s.Send(f.reply(r))
	}
	f.batch = func(r *ddqv1.EnqueueBatchRequest) error {
		if slices.ContainsFunc(r.GetTasks(), bad) {
			return status.Error(codes.ResourceExhausted, "the message is too large")
		}
		return nil
	}
}

// checkAmid finds that each task of amid was answered for what it is.
func checkAmid(t *testing.T, f *fakeServer, task Task, err error) {
	t.Helper()
	stored := f.ids()[task.ID] != nil
	var e *Error
	switch errors.As(err, &e); {
	case strings.HasPrefix(task.ID, "good"):
		if err != nil || !stored {
			t.Errorf("%s: %v, stored %v", task.ID, err, stored)
		}
	case err == nil || stored:
		t.Errorf("%s: no error, stored %v", task.ID, stored)
	case task.ID == "huge" && e.Reason != "PAYLOAD_TOO_LARGE", task.ID == "refused" && e.Reason != "BACKLOG_FULL" && !errors.Is(err, ErrUnknown):
		t.Errorf("%s: %v", task.ID, err)
	case task.ID == "poison" && e.Reason != "POISON" && !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrExhausted):
		t.Errorf("%s: %v", task.ID, err)
	}
}

// One task that breaks whatever carries it, one that is too large and one that is refused share
// frames with those of other callers, and decide over themselves alone.
func TestEachTaskOfAFrameIsAnsweredByItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		judgeAmid(f)
		c := start(t, f, Config{})
		var all sync.WaitGroup
		for _, task := range amid(40) {
			all.Go(func() {
				_, err := c.Enqueue(t.Context(), task)
				checkAmid(t, f, task, err)
			})
		}
		all.Wait()
	})
}

func TestEachTaskOfABatchIsAnsweredByItsOwn(t *testing.T) {
	for _, unary := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := &fakeServer{}
			judgeAmid(f)
			c := start(t, f, Config{Unary: unary})
			tasks := amid(1000)
			results, _ := c.EnqueueBatch(t.Context(), tasks)
			for i, r := range results {
				checkAmid(t, f, tasks[i], r.Err)
			}
		})
	}
}

// A frame that was sent and not answered may have been stored. That the repeat is refused says nothing
// of it; that the server did not take the stream does.
func TestWhatMayBeStoredIsUnknown(t *testing.T) {
	denied := status.Error(codes.Unauthenticated, "token revoked")
	for name, c := range map[string]struct {
		first, again error
		refused      bool // at once: the server says that it did not begin
		want, not    error
	}{
		"refused at once":                {first: denied, refused: true, want: ErrDenied, not: ErrUnknown},
		"revoked, and refused again":     {first: denied, again: denied, want: ErrUnknown},
		"lost, and refused again":        {first: status.Error(codes.Unavailable, "reset"), again: denied, want: ErrUnknown},
		"lost, and found to be stored":   {first: status.Error(codes.Unavailable, "reset")},
		"broken, and found to be stored": {first: status.Error(codes.Internal, "reset")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeServer{unary: func(string) error { return c.again }}
				f.answer = func(s *fakeStream, r *ddqv1.EnqueueStreamRequest) error {
					switch {
					case c.refused:
						s.SetTrailer(metadata.Pairs("ddq-request-id", "1"))
						return c.first
					case s.number > 1 && c.again != nil:
						s.SetTrailer(metadata.Pairs("ddq-request-id", "1"))
						return c.again
					case s.number > 1:
						return s.Send(f.reply(r))
					}
					f.reply(r)
					_ = s.SendHeader(nil)
					return c.first
				}
				cl := start(t, f, Config{})
				began := time.Now()
				_, err := cl.Enqueue(t.Context(), Task{Topic: "mail"})
				if !errors.Is(err, c.want) || c.not != nil && errors.Is(err, c.not) {
					t.Errorf("got %v, want %v and not %v", err, c.want, c.not)
				}
				if took := time.Since(began); took > time.Second {
					t.Errorf("took %v", took)
				}
				if (f.calls["Enqueue"] > 0) != (c.again != nil && c.first == denied || name == "broken, and found to be stored") {
					t.Errorf("%d unary calls", f.calls["Enqueue"])
				}
			})
		})
	}
}

// What became of an idempotency key is said by a call as by the stream.
func TestReceiptSaysWhatBecameOfTheKey(t *testing.T) {
	for _, unary := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := start(t, &fakeServer{}, Config{Unary: unary})
			task := Task{Topic: "mail", Idempotency: &Idempotency{Key: "k"}}
			first, err := c.Enqueue(t.Context(), task)
			if err != nil || first.Key != KeyEnqueued || first.Version != 1 {
				t.Errorf("unary %v: got %+v, %v", unary, first, err)
			}
			task.ID = ""
			again, err := c.Enqueue(t.Context(), task)
			if err != nil || again.Key != KeyReturned || again.Version != 0 || again.ID != first.ID {
				t.Errorf("unary %v: got %+v, %v", unary, again, err)
			}
		})
	}
}
