package worker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/api/ddqv1"
)

func TestHandlerUnderTestShowsItsResult(t *testing.T) {
	double := HandlerFunc(func(_ context.Context, t Task) error { return t.SetResult(append(t.Payload, t.Payload...)) })
	task := NewTask(Task{Topic: "mail", Payload: []byte("ab")})
	if err := double.Handle(t.Context(), task); err != nil || string(task.Result()) != "abab" {
		t.Errorf("result %q, %v", task.Result(), err)
	}
	if task.ID == "" || task.Attempt != 1 || task.Last() != (task.MaxRetries == 0) {
		t.Errorf("task %+v", task)
	}
	if third := NewTask(Task{ID: "a", Attempt: 3}); third.ID != "a" || third.Attempt != 3 || third.Result() != nil {
		t.Errorf("task %+v", third)
	}
	if got := (Task{}).Result(); got != nil {
		t.Errorf("result of a task that nobody made: %q", got)
	}
}

func TestTaskSaysWhatItsProducerSaid(t *testing.T) {
	expires := time.Now().Add(time.Hour)
	var got Task
	got.fill(&ddqv1.Delivery{Task: &ddqv1.Task{
		Priority: 9, FairnessKey: "f", RateKey: "r", ConcurrencyKey: "c", IdempotencyKey: "i",
		ExpireTime: timestamppb.New(expires), LastError: "boom", Schedule: "nightly", OccurrenceTime: timestamppb.New(expires.Add(-time.Hour)),
	}})
	if got.Run == nil || got.Run.Schedule != "nightly" || !got.Run.Occurrence.Equal(expires.Add(-time.Hour)) {
		t.Errorf("run %+v", got.Run)
	}
	if got.Priority != 9 || got.FairnessKey+got.RateKey+got.ConcurrencyKey+got.IdempotencyKey != "frci" || !got.Expires.Equal(expires) || got.LastError != "boom" {
		t.Errorf("task %+v", got)
	}
}

func TestHandlerOfAKind(t *testing.T) {
	errWelcome, errInvoice := errors.New("welcome"), errors.New("invoice")
	returns := func(err error) Handler {
		return HandlerFunc(func(context.Context, Task) error { return err })
	}
	h := ByAttribute("kind", map[string]Handler{"welcome": returns(errWelcome), "invoice": returns(errInvoice)})
	for kind, want := range map[string]error{"welcome": errWelcome, "invoice": errInvoice} {
		if err := h.Handle(t.Context(), Task{Attributes: map[string]string{"kind": kind}}); !errors.Is(err, want) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if err := h.Handle(t.Context(), Task{}); err == nil || !strings.Contains(err.Error(), `no handler for tasks with kind ""`) {
		t.Errorf("without a kind: %v", err)
	}
}

func TestEventKindsHaveNames(t *testing.T) {
	for k, want := range map[EventKind]string{Received: "received", Lost: "lost", Disconnected: "disconnected", 0: "unknown", 99: "unknown"} {
		if got := k.String(); got != want {
			t.Errorf("%d is %q, want %q", k, got, want)
		}
	}
}
