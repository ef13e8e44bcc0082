package batch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/api/client"
)

// fake stores what it is given.
type fake struct {
	mu     sync.Mutex
	sizes  []int // of batches; guarded by mu
	answer func() error
}

func (f *fake) EnqueueBatch(_ context.Context, tasks []client.Task) ([]client.Result, error) {
	f.mu.Lock()
	f.sizes = append(f.sizes, len(tasks))
	f.mu.Unlock()
	results := make([]client.Result, len(tasks))
	var err error
	if f.answer != nil {
		err = f.answer()
	}
	for i := range results {
		results[i] = client.Result{Receipt: client.Receipt{ID: tasks[i].ID}, Err: err}
	}
	return results, err
}

func (f *fake) batches() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.sizes)
}

func TestBatcherConfirmsEachTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(&fake{}, Config{MaxTasks: 10})
		var confirmed atomic.Int64
		for n := range 95 {
			id := fmt.Sprint(n)
			err := b.Add(t.Context(), client.Task{Topic: "mail", ID: id}, func(r client.Receipt, err error) {
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
		if err := b.Add(t.Context(), client.Task{Topic: "mail"}, nil); !errors.Is(err, client.ErrClosed) {
			t.Errorf("after Close got %v", err)
		}
	})
}

func TestBatcherSendsAfterMaxDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		b := New(f, Config{MaxDelay: time.Second})
		for range 3 {
			if err := b.Add(t.Context(), client.Task{Topic: "mail"}, nil); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second - time.Millisecond)
		if len(f.batches()) != 0 {
			t.Error("sent before the delay")
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if !slices.Equal(f.batches(), []int{3}) {
			t.Errorf("batches %v, want one of 3", f.batches())
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestBatcherFlushWaitsForOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(&fake{}, Config{MaxDelay: time.Hour})
		done := false
		if err := b.Add(t.Context(), client.Task{Topic: "mail"}, func(client.Receipt, error) { done = true }); err != nil {
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
		lost := errors.New("no answer")
		b := New(&fake{answer: func() error { time.Sleep(time.Minute); return lost }}, Config{MaxTasks: 2, InFlight: 2})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		taken := 0
		var failed atomic.Int64
		for range 8 {
			err := b.Add(ctx, client.Task{Topic: "mail"}, func(_ client.Receipt, err error) {
				if errors.Is(err, lost) {
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

// Whoever flushes waits for what is in flight, not for others who flush.
func TestFlushesBesideEachOtherReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(&fake{answer: func() error { time.Sleep(20 * time.Millisecond); return nil }}, Config{MaxTasks: 2, InFlight: 4})
		defer b.Close()
		began := time.Now()
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 50 {
					if err := b.Add(t.Context(), client.Task{Topic: "t"}, nil); err != nil {
						t.Error(err)
					}
					if err := b.Flush(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if took := time.Since(began); took > time.Minute {
			t.Errorf("took %v", took)
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		b.flush <- struct{}{} // another one is at it
		if err := b.Flush(over); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		<-b.flush
	})
}

// silent answers a batch as a whole.
type silent struct{ err error }

func (s silent) EnqueueBatch(context.Context, []client.Task) ([]client.Result, error) {
	return nil, s.err
}

func TestEachTaskHearsOfABatchWithoutResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, want := range []error{errors.New("no network"), errNoResult} {
			s := silent{want}
			if want == errNoResult {
				s.err = nil
			}
			b, heard := New(s, Config{}), 0
			for range 3 {
				_ = b.Add(t.Context(), client.Task{Topic: "t"}, func(_ client.Receipt, err error) {
					if heard++; !errors.Is(err, want) {
						t.Errorf("got %v, want %v", err, want)
					}
				})
			}
			if _ = b.Close(); heard != 3 {
				t.Errorf("%d of 3 heard", heard)
			}
		}
	})
}
