package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// shouting is a Codec of payloads that begin with their topic.
type shouting struct{}

func (shouting) Encode(_ context.Context, topic string, payload []byte) (encoded, fingerprint []byte, err error) {
	return []byte(topic + "!" + string(payload)), make([]byte, 16), nil
}

func (shouting) Decode(_ context.Context, topic string, encoded []byte) ([]byte, error) {
	switch payload, ok := bytes.CutPrefix(encoded, []byte(topic+"!")); {
	case ok:
		return payload, nil
	case string(encoded) == "away":
		return nil, errBoom
	}
	return nil, fmt.Errorf("%w: no shout", client.ErrUndecodable)
}

func TestHandlersGetWhatWasDecoded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []string
		answer := func(_ *fakeStream, f *ddqv1.SubscribeRequest) *ddqv1.Settled {
			mu.Lock()
			defer mu.Unlock()
			for _, a := range f.GetAcks() {
				for _, r := range a.GetEnqueue() {
					got = append(got, fmt.Sprintf("ack of %s: %s %d", a.GetTaskId(), r.GetPayload(), len(r.GetPayloadFingerprint())))
				}
			}
			for _, n := range f.GetNacks() {
				got = append(got, fmt.Sprintf("nack of %s: %s %v", n.GetTaskId(), n.GetError(), n.GetPermanent()))
			}
			return &ddqv1.Settled{Sequence: f.GetSequence()}
		}
		seen := func(h Handler) Handler {
			return HandlerFunc(func(ctx context.Context, task Task) error {
				if string(task.Payload) != "hello" {
					t.Errorf("middleware sees %q", task.Payload)
				}
				return h.Handle(ctx, task)
			})
		}
		x := start(t, &fakeServer{results: answer}, Config{Concurrency: 1, Codec: shouting{}, Middleware: []Middleware{seen}}, HandlerFunc(func(_ context.Context, task Task) error {
			return task.Enqueue(client.Task{Topic: "sms", Payload: task.Payload})
		}))
		st := <-x.streams
		synctest.Wait()
		for _, d := range [][2]string{{"good", st.hello.GetTopic() + "!hello"}, {"bad", "hello"}, {"away", "away"}} {
			st.deliverPayload(d[0], []byte(d[1]))
			synctest.Wait()
		}
		mu.Lock()
		defer mu.Unlock()
		want := []string{
			"ack of good: sms!hello 16", "nack of bad: " + client.ErrUndecodable.Error() + ": no shout true",
			"nack of away: payload is not decoded: " + errBoom.Error() + " false",
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestStepsThatGrowAreEncoded(t *testing.T) {
	var task Task
	h := decoding(shouting{}, HandlerFunc(func(_ context.Context, t Task) error {
		task = t
		return errors.Join(t.Grow(client.Step{Name: "a", Task: client.Task{Payload: []byte("x")}}), t.Grow(client.Step{Name: "b", Wait: client.Wait{Delay: 1}}))
	}))
	if err := h.Handle(t.Context(), NewTask(Task{Topic: "order", Payload: []byte("order!y"), Step: new(Step)})); err != nil {
		t.Fatal(err)
	}
	steps := task.Growth().GetSteps()
	if len(steps) != 2 || string(steps[0].GetTask().GetPayload()) != "order!x" || steps[1].GetWait() == nil {
		t.Errorf("grew %v", steps)
	}
}
