package client

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/ddq-io/ddq/api/client/encoding"
)

type order struct {
	Number int
	Items  map[string]int `json:",omitempty"`
}

// kept is an Enqueuer that keeps what it is given.
type kept []Task

func (k *kept) Enqueue(_ context.Context, t Task) (Receipt, error) {
	*k = append(*k, t)
	return Receipt{Topic: t.Topic, ID: t.ID}, nil
}

func TestTypedTopicEnqueues(t *testing.T) {
	due := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	orders := TopicOf[order]("orders")
	var sent kept
	for _, options := range [][]Option{
		nil,
		{In(time.Hour), WithID("order-17")},
		{At(due), func(t *Task) { t.Priority = 9 }},
	} {
		if _, err := orders.Enqueue(t.Context(), &sent, order{Number: 17}, options...); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []Task{
		{Topic: "orders"},
		{Topic: "orders", Delay: time.Hour, ID: "order-17"},
		{Topic: "orders", Due: due, Priority: 9},
	} {
		got := sent[i]
		if got.Topic != want.Topic || got.Delay != want.Delay || got.ID != want.ID || !got.Due.Equal(want.Due) || got.Priority != want.Priority {
			t.Errorf("enqueued %+v, want %+v", got, want)
		}
		if string(got.Payload) != `{"Number":17}` {
			t.Errorf("payload is %s", got.Payload)
		}
	}
}

func TestTypedTopicReadsPayloads(t *testing.T) {
	orders := TopicOf[order]("orders")
	if got, err := orders.Value([]byte(`{"Number":4,"Items":{"pen":2}}`)); err != nil || got.Number != 4 || got.Items["pen"] != 2 {
		t.Errorf("read %+v, %v", got, err)
	}
	if _, err := orders.Value([]byte("four")); err == nil {
		t.Error("read what is no order")
	}
}

func TestTypedTopicHasTheEncodingItIsGiven(t *testing.T) {
	words := TypedTopic[*wrapperspb.StringValue]{Name: "words", Encoding: encoding.Proto[*wrapperspb.StringValue]{}}
	task, err := words.Task(wrapperspb.String("pen"))
	if err != nil || string(task.Payload) != "\x0a\x03pen" {
		t.Fatalf("payload is %q, %v", task.Payload, err)
	}
	if got, err := words.Value(task.Payload); err != nil || got.GetValue() != "pen" {
		t.Errorf("read %v, %v", got, err)
	}
}

// What cannot be written is the caller's fault, and is not sent.
func TestTypedTopicWithoutAPayload(t *testing.T) {
	var sent kept
	_, err := TopicOf[func()]("calls").Enqueue(t.Context(), &sent, func() {})
	var e *Error
	if !errors.Is(err, ErrInvalid) || !errors.As(err, &e) || e.Field != "payload" || len(sent) != 0 {
		t.Errorf("got %v, and %d tasks were sent", err, len(sent))
	}
}
