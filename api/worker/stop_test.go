package worker

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/api/ddqv1"
)

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

// A server that takes its time with the last settlements is heard out while it answers; one that is
// there and says nothing, for as long as the grace period.
func TestLastSettlementsAreHeardOut(t *testing.T) {
	for name, c := range map[string]struct {
		answers int // of 10 frames
		took    time.Duration
	}{
		"slowly": {10, 40 * time.Second},
		"never":  {0, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeServer{}
				var frames []uint64
				var mu sync.Mutex
				f.results = func(_ *fakeStream, r *ddqv1.SubscribeRequest) *ddqv1.Settled {
					mu.Lock()
					defer mu.Unlock()
					frames = append(frames, r.GetSequence())
					return nil
				}
				x := start(t, f, Config{Concurrency: 10, Grace: 18 * time.Second}, HandlerFunc(func(_ context.Context, task Task) error {
					n, _ := strconv.Atoi(task.ID[1:])
					time.Sleep(time.Duration(n) * 100 * time.Millisecond) // in a frame of its own
					return nil
				}))
				st := <-x.streams
				synctest.Wait()
				st.deliver(ids(0, 10)...)
				time.Sleep(2 * time.Second)
				mu.Lock()
				sent := slices.Clone(frames)
				mu.Unlock()
				if len(sent) != 10 {
					t.Errorf("%d frames", len(sent))
				}
				began := time.Now()
				go func() {
					for _, sequence := range sent[:min(c.answers, len(sent))] {
						time.Sleep(4 * time.Second)
						st.send(&ddqv1.SubscribeResponse{Settled: []*ddqv1.Settled{{Sequence: sequence}}})
					}
				}()
				err := x.end()
				if (err == nil) != (c.answers > 0) || time.Since(began) != c.took {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
			})
		})
	}
}
