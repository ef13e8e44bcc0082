package worker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestHandlerTimeoutEndsTheContext(t *testing.T) {
	for name, c := range map[string]struct {
		returns func(ctx context.Context) error
		nack    string // empty: acked
	}{
		"its error":     {func(ctx context.Context) error { return ctx.Err() }, "handler timed out after 10s"},
		"its cause":     {func(ctx context.Context) error { return context.Cause(ctx) }, "handler timed out after 10s"},
		"another error": {func(context.Context) error { return errBoom }, "handler timed out after 10s: boom"},
		"a verdict":     {func(context.Context) error { return Permanent(errBoom) }, "boom"},
		"success":       {func(context.Context) error { return nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := start(t, &fakeServer{}, Config{HandlerTimeout: 10 * time.Second}, HandlerFunc(func(ctx context.Context, _ Task) error {
					began := time.Now()
					if end, ok := ctx.Deadline(); !ok || end.Sub(began) != 10*time.Second {
						t.Errorf("deadline in %v, %v", end.Sub(began), ok)
					}
					<-ctx.Done()
					if took := time.Since(began); took != 10*time.Second || !errors.Is(context.Cause(ctx), ErrHandlerTimeout) {
						t.Errorf("ended after %v: %v", took, context.Cause(ctx))
					}
					return c.returns(ctx)
				}))
				st := <-x.streams
				synctest.Wait()
				st.deliver("a")
				time.Sleep(11 * time.Second)
				synctest.Wait()
				_, _, acked, nacked, _ := st.books()
				if c.nack == "" {
					if len(acked) != 1 || len(nacked) != 0 {
						t.Errorf("acked %v, nacked %v", acked, nacked)
					}
					return
				}
				if len(nacked) != 1 || nacked[0].GetError() != c.nack {
					t.Errorf("nacked %v, want %q", nacked, c.nack)
				}
			})
		})
	}
}

func TestTaskBringsItsOwnHandlerTimeout(t *testing.T) {
	for name, c := range map[string]struct{ workers, tasks time.Duration }{
		"shorter": {workers: time.Minute, tasks: 5 * time.Second},
		"longer":  {workers: time.Second, tasks: 5 * time.Second},
		"alone":   {tasks: 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeServer{handlerTimeout: c.tasks}
				x := start(t, f, Config{HandlerTimeout: c.workers}, HandlerFunc(func(ctx context.Context, task Task) error {
					began := time.Now()
					<-ctx.Done()
					if took := time.Since(began); took != c.tasks || task.HandlerTimeout != c.tasks {
						t.Errorf("ended after %v, the task says %v", took, task.HandlerTimeout)
					}
					return ctx.Err()
				}))
				st := <-x.streams
				synctest.Wait()
				st.deliver("a")
				time.Sleep(c.tasks)
				synctest.Wait()
				if _, _, _, nacked, _ := st.books(); len(nacked) != 1 || nacked[0].GetError() != "handler timed out after 5s" {
					t.Errorf("nacked %v", nacked)
				}
			})
		})
	}
}

// A handler that does not listen to its context cannot keep its task.
func TestHandlerThatGoesOnPastItsTimeoutLosesItsTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		x := start(t, &fakeServer{}, Config{Concurrency: 1, MaxInFlight: 2, HandlerTimeout: time.Minute}, HandlerFunc(func(_ context.Context, task Task) error {
			if task.ID == "stuck" {
				<-release
			}
			return nil
		}))
		st := <-x.streams
		synctest.Wait()
		st.deliver("stuck")
		time.Sleep(time.Minute + cancelGrace)
		synctest.Wait()
		_, held, _, nacked, extends := st.books()
		if len(nacked) != 1 || nacked[0].GetError() != "handler timed out after 1m0s" || held != 0 {
			t.Errorf("nacked %v, %d held", nacked, held)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		credit, _, _, _, later := st.books()
		if later != extends {
			t.Errorf("%d extends after it was given up", later-extends)
		}
		if credit != 1 {
			t.Errorf("granted %d of 2 while the handler keeps its place", credit)
		}
		close(release)
		synctest.Wait()
		st.deliver("next")
		synctest.Wait()
		if _, _, acked, _, _ := st.books(); len(acked) != 1 || acked[0] != "next" {
			t.Errorf("acked %v, want what came after and not what was given up", acked)
		}
	})
}

// What became of an attempt that was given up is told, whether its middleware asks before or after.
func TestAttemptThatIsGivenUpHearsItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard := make(chan string, 2)
		stuck := make(chan struct{})
		x := start(t, &fakeServer{}, Config{HandlerTimeout: time.Minute}, HandlerFunc(func(_ context.Context, task Task) error {
			hear := func(k EventKind) { heard <- task.ID + " " + k.String() }
			if task.ID == "before" {
				task.OnSettled(hear)
			}
			<-stuck
			if task.ID == "after" {
				task.OnSettled(hear)
			}
			return nil
		}))
		st := <-x.streams
		synctest.Wait()
		st.deliver("before", "after")
		time.Sleep(2 * time.Minute)
		select {
		case got := <-heard:
			if got != "before nacked" {
				t.Errorf("heard %q", got)
			}
		default:
			t.Error("nothing heard while the handler is stuck")
		}
		close(stuck)
		synctest.Wait()
		if len(heard) != 1 || <-heard != "after nacked" {
			t.Error("nothing heard by who asked later")
		}
	})
}
