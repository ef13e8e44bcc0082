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
		if h := st.hello; h.GetTopic() != "mail" || h.GetWorker() != "w1" || h.GetVisibilityTimeoutMs() != 60000 || h.GetMaxInFlight() != mostInFlight {
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
		task := <-got
		task.journal = nil
		task.ending = nil // where it goes, which TestResultGoesWithTheAck looks at
		if !reflect.DeepEqual(task, want) {
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
