package worker

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ddq-io/ddq/api/client"
)

type parcel struct{ Weight int }

func TestHandlerOfGetsTheValue(t *testing.T) {
	parcels := client.TopicOf[parcel]("parcels")
	mux := NewMux()
	var got []parcel
	Handle(mux, parcels, func(_ context.Context, p parcel, task Task) error {
		got = append(got, p)
		return task.SetResult([]byte(task.ID))
	})
	task := NewTask(Task{ID: "a", Topic: "parcels", Payload: []byte(`{"Weight":3}`)})
	if err := mux.Handle(t.Context(), task); err != nil || !slices.Equal(got, []parcel{{3}}) || string(task.Result()) != "a" {
		t.Errorf("handled %v with result %s, %v", got, task.Result(), err)
	}
}

// A payload that is none of the topic's is dead at once, and its handler does not see it.
func TestHandlerOfRefusesOtherPayloads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := HandlerOf(client.TopicOf[parcel]("mail"), func(context.Context, parcel, Task) error {
			t.Error("the handler was called")
			return nil
		})
		x := start(t, &fakeServer{}, Config{Concurrency: 1}, handler)
		st := <-x.streams
		synctest.Wait()
		st.deliverPayload("a", []byte("three pounds"))
		synctest.Wait()
		_, _, acked, nacked, _ := st.books()
		if len(acked) != 0 || len(nacked) != 1 {
			t.Fatalf("acked %v, nacked %v", acked, nacked)
		}
		if n := nacked[0]; !n.GetPermanent() || !strings.HasPrefix(n.GetError(), "payload is no worker.parcel: invalid character") {
			t.Errorf("nacked %v", n)
		}
	})
}

// deliverPayload sends a task with that payload.
func (st *fakeStream) deliverPayload(id string, payload []byte) {
	st.f.t.Helper()
	d := delivery(st.hello.GetTopic(), id)
	d.Task.Payload = payload
	st.sendTasks(d)
}
