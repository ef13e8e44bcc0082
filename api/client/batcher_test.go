package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/api/ddqv1"
)

func TestBatcherConfirmsEachTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		b := NewBatcher(start(t, f, Config{}), BatcherConfig{MaxTasks: 10})
		var confirmed atomic.Int64
		for n := range 95 {
			id := fmt.Sprint(n)
			err := b.Add(t.Context(), Task{Topic: "mail", ID: id}, func(r Receipt, err error) {
				if err != nil || r.ID != id {
					t.Errorf("got %v, %v for %s", r, err, id)
				}
				confirmed.Add(1)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if got := confirmed.Load(); got != 95 {
			t.Errorf("%d confirmed, want 95", got)
		}
		if err := b.Add(t.Context(), Task{Topic: "mail"}, nil); !errors.Is(err, ErrClosed) {
			t.Errorf("after Close got %v", err)
		}
	})
}

func TestBatcherSendsAfterMaxDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		b := NewBatcher(start(t, f, Config{}), BatcherConfig{MaxDelay: time.Second})
		for range 3 {
			if err := b.Add(t.Context(), Task{Topic: "mail"}, nil); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second - time.Millisecond)
		if len(f.ids()) != 0 {
			t.Error("sent before the delay")
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if !slices.Equal(f.frames, []int{3}) {
			t.Errorf("frames %v, want one of 3", f.frames)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestBatcherFlushWaitsForOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		b := NewBatcher(start(t, f, Config{}), BatcherConfig{MaxDelay: time.Hour})
		done := false
		if err := b.Add(t.Context(), Task{Topic: "mail"}, func(Receipt, error) { done = true }); err != nil {
			t.Fatal(err)
		}
		if err := b.Flush(t.Context()); err != nil || !done {
			t.Errorf("flushed: %v, done %v", err, done)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestBatcherHoldsCallersBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		f.answer = func(*fakeStream, *ddqv1.EnqueueStreamRequest) error { return nil } // never
		b := NewBatcher(start(t, f, Config{Timeout: time.Minute}), BatcherConfig{MaxTasks: 2, InFlight: 2})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		taken := 0
		var failed atomic.Int64
		for range 8 {
			err := b.Add(ctx, Task{Topic: "mail"}, func(_ Receipt, err error) {
				if err != nil {
					failed.Add(1)
				}
			})
			if err != nil {
				break
			}
			taken++
		}
		if taken != 6 { // two batches in flight and one full
			t.Errorf("took %d tasks", taken)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if got := failed.Load(); got != 6 {
			t.Errorf("%d tasks learned that they failed, want all 6", got)
		}
	})
}
