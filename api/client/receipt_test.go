package client

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/api/client/internal/sender"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// Without a server the error says what was tried, where, and what to look at.
func TestErrorWithoutAServerNamesTheCall(t *testing.T) {
	c, err := Dial("127.0.0.1:1", Config{Timeout: time.Second}) // to hear that nobody listens takes a busy machine a while
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	has := func(err error, wants ...string) {
		t.Helper()
		for _, want := range wants {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v lacks %q", err, want)
			}
		}
	}
	_, err = c.Enqueue(t.Context(), Task{Topic: "mail"})
	has(err, "enqueue to topic mail at 127.0.0.1:1: ", "refused", "is a ddq server running there?")
	if !errors.Is(err, ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v is not of its kind", err)
	}
	_, err = c.EnqueueBatch(t.Context(), []Task{{Topic: "mail"}})
	has(err, "enqueue to topic mail at 127.0.0.1:1: ", "is a ddq server running there?")
	_, err = c.Get(t.Context(), "mail", "a")
	has(err, "call of the server at 127.0.0.1:1: ", "is a ddq server running there?")
}

func TestReceiptSaysWhatIsSo(t *testing.T) {
	due := timestamppb.New(time.Unix(0, 0))
	for _, c := range []struct {
		result *ddqv1.EnqueueResult
		want   string
	}{
		{&ddqv1.EnqueueResult{}, "task a of topic mail, due 1970-01-01T00:00:00Z, version 1"},
		{&ddqv1.EnqueueResult{Deduplicated: true}, "task a of topic mail, due 1970-01-01T00:00:00Z, enqueued before"},
		{
			&ddqv1.EnqueueResult{IdempotencyOutcome: ddqv1.IdempotencyOutcome_IDEMPOTENCY_OUTCOME_REPLACED},
			"task a of topic mail, due 1970-01-01T00:00:00Z, idempotency key replaced",
		},
		{
			&ddqv1.EnqueueResult{ReplacedState: ddqv1.TaskState_TASK_STATE_DEAD},
			"task a of topic mail, due 1970-01-01T00:00:00Z, version 1, replaces one that was dead",
		},
	} {
		c.result.ExecuteTime = due
		if r, err := receipt(sender.Answer{Result: c.result}, "mail", "a"); err != nil || r.String() != c.want {
			t.Errorf("%q, %v, want %q", r, err, c.want)
		}
	}
	if got := KeyOutcome(0).String(); got != "none" {
		t.Errorf("the outcome of no key is %q", got)
	}
}
