package server

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/wire"
	"github.com/ddq-io/ddq/store"
)

// shelf lists tasks of given payload sizes; its tokens are positions.
type shelf struct {
	payloads []int
	most     int // asked for at a time
}

func (s *shelf) list(size int, token string) (tasks []service.Found, next string, err error) {
	s.most = max(s.most, size)
	at, _ := strconv.Atoi(token)
	for ; at < len(s.payloads) && len(tasks) < size; at++ {
		tasks = append(tasks, service.Found{Snapshot: store.Snapshot{Task: store.Task{
			ID: fmt.Sprint(at), Payload: make([]byte, s.payloads[at]),
		}}})
	}
	if at < len(s.payloads) {
		next = strconv.Itoa(at)
	}
	return tasks, next, nil
}

// walk reads every page and returns their sizes.
func (s *shelf) walk(t *testing.T, size int32) (pages []int) {
	t.Helper()
	seen := 0
	for token := ""; ; {
		tasks, next, err := page(size, token, s.list)
		if err != nil {
			t.Fatal(err)
		}
		bytes := 0
		for _, task := range tasks {
			if task.Id != fmt.Sprint(seen) {
				t.Fatalf("got task %s, want %d", task.Id, seen)
			}
			seen++
			bytes += len(task.Payload)
		}
		if bytes > pageBytes && len(tasks) > 1 {
			t.Fatalf("page of %d tasks has %d bytes", len(tasks), bytes)
		}
		pages = append(pages, len(tasks))
		if token = next; token == "" {
			break
		}
	}
	if seen != len(s.payloads) {
		t.Fatalf("saw %d of %d tasks", seen, len(s.payloads))
	}
	return pages
}

func payloads(n, bytes int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = bytes
	}
	return out
}

func TestPagesHaveTheSizeAskedFor(t *testing.T) {
	for _, c := range []struct {
		size  int32
		tasks int
		first int
	}{{0, 250, 100}, {10, 25, 10}, {250, 251, 250}, {1000, 1200, 1000}, {5000, 1200, 1000}, {100, 0, 0}} {
		s := &shelf{payloads: payloads(c.tasks, 10)}
		if pages := s.walk(t, c.size); pages[0] != c.first {
			t.Errorf("size %d of %d: pages of %v", c.size, c.tasks, pages)
		}
		if s.most > pageStep {
			t.Errorf("asked for %d at a time", s.most)
		}
	}
}

func TestPagesStayWithinAMessage(t *testing.T) {
	s := &shelf{payloads: payloads(20, 1<<20)}
	for _, n := range s.walk(t, 100)[:9] {
		if n != 2 {
			t.Errorf("page of %d tasks of 1 MiB, want 2", n)
		}
	}
	(&shelf{payloads: []int{10, 4 << 20, 4 << 20, 10, 10, 2 << 20, 2 << 20}}).walk(t, 100)
	(&shelf{payloads: []int{4 << 20, 10}}).walk(t, 1000)
}

func TestPageSizeIsClamped(t *testing.T) {
	if _, _, err := page(-1, "", new(shelf).list); err == nil || err.(*problem.Error).Field != "page_size" {
		t.Errorf("got %v, want page_size refused", err)
	}
	fails := errors.New("no store")
	_, _, err := page(1, "", func(int, string) ([]service.Found, string, error) { return nil, "", fails })
	if err != fails {
		t.Errorf("got %v, want %v", err, fails)
	}
}

func TestRetryCountIsDeliveriesBefore(t *testing.T) {
	for _, c := range []struct {
		state   store.State
		attempt int
		want    int32
	}{
		{store.StateScheduled, 0, 0}, {store.StateReady, 0, 0}, {store.StateRunning, 1, 0}, {store.StateRunning, 3, 2},
		{store.StateRetrying, 1, 1}, {store.StateDone, 1, 0}, {store.StateDead, 4, 3}, {store.StateDead, 0, 0}, {store.StateExpired, 2, 2},
	} {
		if got := wire.RetryCount(c.state, c.attempt); got != c.want {
			t.Errorf("%v at attempt %d: got %d, want %d", c.state, c.attempt, got, c.want)
		}
	}
}

func TestFoundTaskIsSentInFull(t *testing.T) {
	got := foundWire(&service.Found{Topic: "t", MaxRetries: 5, Snapshot: store.Snapshot{
		Task:  store.Task{ID: "a", Due: 10, Created: 5, Expires: 20, Attempt: 1, LastError: "cut in \xc3"},
		State: store.StateRunning, Worker: "w", Deadline: 30,
	}})
	if got.Topic != "t" || got.MaxRetries != 5 || got.State != ddqv1.TaskState_TASK_STATE_RUNNING || got.Worker != "w" ||
		got.HoldDeadline.AsTime().UnixMilli() != 30 || got.ExpireTime.AsTime().UnixMilli() != 20 ||
		got.LastError != "cut in \uFFFD" || got.FinishedAt != nil {
		t.Errorf("got %v", got)
	}
	pending := foundWire(&service.Found{Snapshot: store.Snapshot{Task: store.Task{Due: 1}, State: store.StateReady, Deadline: 30, Worker: "w"}})
	if pending.HoldDeadline != nil || pending.Worker != "" || pending.ExpireTime != nil {
		t.Errorf("a task nobody holds: %v", pending)
	}
}
