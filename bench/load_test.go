package bench

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

// sink is a driver that keeps what it is given and fails call number failAt.
type sink struct {
	mu     sync.Mutex // guards the rest
	sizes  map[int]int
	ids    map[string]int
	calls  int
	failAt int
}

var errSink = errors.New("sink is full")

func (s *sink) Enqueue(_ context.Context, tasks []Task) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.calls == s.failAt {
		return errSink
	}
	s.sizes[len(tasks)]++
	for _, t := range tasks {
		s.ids[t.ID]++
	}
	return nil
}

func (s *sink) Work(context.Context, Session) error { return nil }
func (s *sink) Close() error                        { return nil }

func newSink() *sink { return &sink{sizes: map[int]int{}, ids: map[string]int{}} }

func TestLoadSendsEachTaskOnce(t *testing.T) {
	for _, test := range []struct {
		mode  string
		sizes map[int]int
	}{
		{"batch", map[int]int{512: 4, 100: 1}},
		{"single", map[int]int{1: 2148}},
	} {
		t.Run(test.mode, func(t *testing.T) {
			const n = 2148
			s, m := newSink(), newMaker(1, 1, 200)
			_, err := newLoad(test.mode, 64, n, func(i int) Task { return m.task(i, time.Time{}) }).send(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			if len(s.ids) != n {
				t.Errorf("sent %d different tasks, want %d", len(s.ids), n)
			}
			for size, want := range test.sizes {
				if got := s.sizes[size]; got != want {
					t.Errorf("calls of %d tasks: got %d, want %d (all: %v)", size, got, want, s.sizes)
				}
			}
		})
	}
}

func TestLoadStopsAtTheFirstError(t *testing.T) {
	s, m := newSink(), newMaker(1, 1, 200)
	s.failAt = 3
	const n, callers = 1_000_000, 4
	_, err := newLoad("single", callers, n, func(i int) Task { return m.task(i, time.Time{}) }).send(t.Context(), cancelled{s})
	if !errors.Is(err, errSink) {
		t.Fatalf("got %v, want %v", err, errSink)
	}
	if s.calls == n {
		t.Error("every call was made in spite of the error")
	}
}

// cancelled is a driver that heeds its context, as real ones do.
type cancelled struct{ *sink }

func (c cancelled) Enqueue(ctx context.Context, tasks []Task) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return c.sink.Enqueue(ctx, tasks)
}
