package worker

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// An ack brings what its handler enqueued, and one that is refused for that fails the attempt.
func TestTasksGoWithTheAck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []string
		answer := func(_ *fakeStream, f *ddqv1.SubscribeRequest) *ddqv1.Settled {
			mu.Lock()
			defer mu.Unlock()
			settled := &ddqv1.Settled{Sequence: f.GetSequence()}
			for _, a := range f.GetAcks() {
				for _, r := range a.GetEnqueue() {
					got = append(got, "ack of "+a.GetTaskId()+": "+string(r.GetPayload()))
				}
				if a.GetTaskId() == "refused" {
					settled.Results = append(settled.Results, &ddqv1.SettleResult{TaskId: a.GetTaskId(), HoldToken: a.GetHoldToken(), Error: &ddqv1.Error{
						Code: 3, Reason: "PAYLOAD_TOO_LARGE", Field: "enqueue[0].payload", Message: "too large",
					}})
				}
			}
			for _, n := range f.GetNacks() {
				got = append(got, "nack of "+n.GetTaskId()+": "+n.GetError())
			}
			return settled
		}
		x := start(t, &fakeServer{results: answer}, Config{}, HandlerFunc(func(_ context.Context, task Task) error {
			if err := task.Enqueue(client.Task{Topic: "mail", Payload: []byte("x")}); err != nil || task.ID != "failed" {
				return err
			}
			return errBoom
		}))
		st := <-x.streams
		synctest.Wait()
		for _, id := range []string{"good", "failed", "refused"} {
			st.deliver(id)
			synctest.Wait()
		}
		mu.Lock()
		defer mu.Unlock()
		want := []string{"ack of good: x", "nack of failed: " + errBoom.Error(), "ack of refused: x", "nack of refused: enqueue[0].payload: too large"}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestHandlerIsToldWhatNoAckCanEnqueue(t *testing.T) {
	task := NewTask(Task{})
	if err := task.Enqueue(client.Task{Topic: "a"}, client.Task{Topic: "b", Payload: []byte("x")}); err != nil || len(task.Enqueued()) != 2 {
		t.Fatalf("%v, %v", err, task.Enqueued())
	}
	for name, tasks := range map[string][]client.Task{
		"too many":  make([]client.Task, MaxEnqueue-1),
		"too large": {{Payload: []byte(strings.Repeat("x", MaxEnqueueBytes))}},
		"two times": {{Delay: 1, Due: task.Due.AddDate(1, 0, 0)}},
	} {
		if err := task.Enqueue(tasks...); err == nil || len(task.Enqueued()) != 2 {
			t.Errorf("%s: %v, %d tasks", name, err, len(task.Enqueued()))
		}
	}
	if err := (Task{}).Enqueue(client.Task{}); err != nil || (Task{}).Enqueued() != nil {
		t.Error("a task that nobody made keeps tasks")
	}
}
