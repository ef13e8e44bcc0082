package worker

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// results keeps what acks bring.
type results struct {
	mu     sync.Mutex
	byID   map[string]string
	frames int // with acks
	most   int // bytes of results in one
}

func (r *results) take(_ *fakeStream, f *ddqv1.SubscribeRequest) *ddqv1.Settled {
	r.mu.Lock()
	defer r.mu.Unlock()
	bytes := 0
	for _, a := range f.GetAcks() {
		r.byID[a.GetTaskId()] = string(a.GetResult())
		bytes += len(a.GetResult())
	}
	r.frames++
	r.most = max(r.most, bytes)
	return &ddqv1.Settled{Sequence: f.GetSequence()}
}

func TestResultGoesWithTheAck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := &results{byID: map[string]string{}}
		x := start(t, &fakeServer{results: got.take}, Config{Concurrency: 3}, HandlerFunc(func(_ context.Context, task Task) error {
			if task.ID == "none" {
				return nil
			}
			if err := task.SetResult([]byte("first")); err != nil {
				return err
			}
			if err := task.SetResult(make([]byte, MaxResult+1)); err == nil {
				t.Error("a large result was taken")
			}
			if task.ID == "failed" {
				return errBoom
			}
			return task.SetResult([]byte("of " + task.ID))
		}))
		st := <-x.streams
		synctest.Wait()
		st.deliver("a", "none", "failed")
		synctest.Wait()
		_, _, _, nacked, _ := st.books()
		got.mu.Lock()
		defer got.mu.Unlock()
		if got.byID["a"] != "of a" || got.byID["none"] != "" || len(got.byID) != 2 || len(nacked) != 1 {
			t.Errorf("results %v, nacked %v", got.byID, nacked)
		}
	})
	if err := (Task{}).SetResult([]byte("x")); err != nil {
		t.Errorf("a task of a test: %v", err)
	}
}

// Many results do not go out in one frame, which a server would refuse.
func TestLargeResultsTakeMoreFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := &results{byID: map[string]string{}}
		large, all := strings.Repeat("x", MaxResult), make(chan struct{})
		x := start(t, &fakeServer{results: got.take}, Config{Concurrency: 50}, HandlerFunc(func(_ context.Context, task Task) error {
			<-all
			return task.SetResult([]byte(large))
		}))
		st := <-x.streams
		synctest.Wait()
		st.deliver(ids(0, 50)...)
		synctest.Wait()
		close(all)
		time.Sleep(time.Second)
		got.mu.Lock()
		defer got.mu.Unlock()
		if len(got.byID) != 50 || got.byID["t0"] != large || got.most > frameResults || got.frames < 50*MaxResult/frameResults {
			t.Errorf("%d results in %d frames of up to %d bytes", len(got.byID), got.frames, got.most)
		}
	})
}

// The answer to an extend tells those who did not hear of it on their stream.
func TestExtendTellsOfACancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{results: func(_ *fakeStream, r *ddqv1.SubscribeRequest) *ddqv1.Settled {
			answer := &ddqv1.Settled{Sequence: r.GetSequence()}
			for _, e := range r.GetExtends() {
				answer.Results = append(answer.Results, &ddqv1.SettleResult{HoldToken: e.GetHoldToken(), HoldMs: 30_000, CancelRequested: true})
			}
			return answer
		}}
		causes := make(chan error, 1)
		x := start(t, f, Config{}, HandlerFunc(func(ctx context.Context, _ Task) error {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return nil
		}))
		st := <-x.streams
		synctest.Wait()
		st.deliver("a")
		if got := <-causes; got != ErrCanceled {
			t.Errorf("the handler's context ended with %v", got)
		}
	})
}
