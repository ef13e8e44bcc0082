package server

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// Tasks of an ordering key come one at a time, in order of their due times, and say what
// they wait for. Asked for in hibiken/asynq#429.
func TestTasksOfAnOrderingKeyComeOneAtATime(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		retries := int32(5)
		var ids []string
		for i := range 4 {
			ids = append(ids, r.enqueue(&ddqv1.EnqueueRequest{
				Topic: "t", Payload: fmt.Append(nil, i), OrderingKey: "account 7", MaxRetries: &retries,
				When: &ddqv1.EnqueueRequest_Delay{Delay: durationpb.New(time.Duration(4-i) * time.Second)},
			}).Id)
		}
		time.Sleep(5 * time.Second)
		held := r.retrieve("t")
		if held.Task.Id != ids[3] || held.Task.OrderingKey != "account 7" {
			t.Fatalf("held %v, want the one that was due first", held.Task)
		}
		for _, id := range ids[:3] {
			if got := r.get(id); got.WaitingFor != ddqv1.WaitingFor_WAITING_FOR_ORDER || got.OrderingKey != "account 7" {
				t.Errorf("%s waits for %v", id, got.WaitingFor)
			}
		}
		none, err := r.queue.Retrieve(r.Context(), &ddqv1.RetrieveRequest{Topic: "t", MaxTasks: 10, WaitMs: 1000})
		if err != nil || len(none.Deliveries) != 0 {
			t.Fatalf("%d tasks beside the one that is held, %v", len(none.Deliveries), err)
		}
		other := r.enqueue(&ddqv1.EnqueueRequest{Topic: "t", OrderingKey: "account 8"})
		if got := r.retrieve("t"); got.Task.Id != other.Id {
			t.Errorf("got %s, want the task of another key", got.Task.Id)
		}
		listed, err := r.queue.ListTasks(r.Context(), &ddqv1.ListTasksRequest{Topic: "t", State: ddqv1.TaskState_TASK_STATE_READY})
		if err != nil || len(listed.Tasks) != 3 || listed.Tasks[0].WaitingFor != ddqv1.WaitingFor_WAITING_FOR_ORDER {
			t.Errorf("listed %v, %v", listed, err)
		}
		for i := 3; i >= 0; i-- {
			if i < 3 {
				held = r.retrieve("t")
			}
			if held.Task.Id != ids[i] {
				t.Fatalf("got task %s, want %d", held.Task.Payload, i)
			}
			r.mustAck("t", held)
		}
	})
}

// A request that is sent again, under an id that its client made for the key, is known.
func TestOrderedTaskMayBeSentAgain(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		request := &ddqv1.EnqueueRequest{
			Topic: "t", OrderingKey: "k", Id: "01890a5d-ac96-8ddc-8123-8254c3290001", // SHA-256 of k: 8254c329...
			When: &ddqv1.EnqueueRequest_Delay{Delay: durationpb.New(time.Hour)},
		}
		if first := r.enqueue(request); first.Deduplicated || first.Id != request.Id {
			t.Errorf("first: %v", first)
		}
		if again := r.enqueue(request); !again.Deduplicated || again.Id != request.Id {
			t.Errorf("again: %v", again)
		}
	})
}
