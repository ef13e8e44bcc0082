package server

import (
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// once is a request with an idempotency key.
func once(key, payload string, rule ddqv1.OnConflict) *ddqv1.EnqueueRequest {
	return &ddqv1.EnqueueRequest{
		Topic: "t", Payload: []byte(payload),
		When:        &ddqv1.EnqueueRequest_Delay{Delay: durationpb.New(time.Hour)},
		Idempotency: &ddqv1.Idempotency{Key: key, OnConflict: rule},
	}
}

func TestIdempotencyKeysOverTheWire(t *testing.T) {
	const (
		giveBack = ddqv1.OnConflict_ON_CONFLICT_RETURN
		reject   = ddqv1.OnConflict_ON_CONFLICT_REJECT
		replace  = ddqv1.OnConflict_ON_CONFLICT_REPLACE
	)
	bubble(t, Config{}, func(r *rig) {
		first := r.enqueue(once("k", "one", giveBack))
		if first.IdempotencyOutcome != ddqv1.IdempotencyOutcome_IDEMPOTENCY_OUTCOME_ENQUEUED || first.Deduplicated {
			r.Errorf("first: %v", first)
		}
		second := r.enqueue(once("k", "two", giveBack))
		if second.Id != first.Id || !second.Deduplicated || second.IdempotencyOutcome != ddqv1.IdempotencyOutcome_IDEMPOTENCY_OUTCOME_RETURNED ||
			second.State != ddqv1.TaskState_TASK_STATE_SCHEDULED || !second.ExecuteTime.AsTime().Equal(first.ExecuteTime.AsTime()) {
			r.Errorf("second: %v, want %v", second, first)
		}
		time.Sleep(time.Second)
		third := r.enqueue(once("k", "three", replace))
		if third.Id != first.Id || third.IdempotencyOutcome != ddqv1.IdempotencyOutcome_IDEMPOTENCY_OUTCOME_REPLACED ||
			third.ExecuteTime.AsTime().Sub(first.ExecuteTime.AsTime()) < time.Second {
			r.Errorf("third: %v", third)
		}
		got, err := r.queue.GetTask(r.Context(), &ddqv1.GetTaskRequest{Id: first.Id})
		must(r, err)
		if got.Task.IdempotencyKey != "k" || string(got.Task.Payload) != "three" {
			r.Errorf("got %v", got.Task)
		}

		_, err = r.queue.Enqueue(r.Context(), once("k", "four", reject))
		if status.Code(err) != codes.AlreadyExists {
			r.Errorf("rejected with %v", err)
		}
		for _, d := range status.Convert(err).Details() {
			if info, ok := d.(*errdetails.ErrorInfo); ok && (info.Reason != "KEY_TAKEN" || info.Metadata["id"] != first.Id || info.Metadata["state"] != "scheduled") {
				r.Errorf("rejected with %v", info)
			}
		}
		batch, err := r.queue.EnqueueBatch(r.Context(), &ddqv1.EnqueueBatchRequest{Tasks: []*ddqv1.EnqueueRequest{
			once("k", "five", reject), once("other", "six", reject),
		}})
		must(r, err)
		if e := batch.Results[0].Error; e == nil || e.Id != first.Id || e.Reason != "KEY_TAKEN" || e.State != ddqv1.TaskState_TASK_STATE_SCHEDULED {
			r.Errorf("item: %v", batch.Results[0])
		}
		if batch.Results[1].Error != nil {
			r.Errorf("item: %v", batch.Results[1])
		}
	})
}

// TestWindowOutlivesItsTask: the window is from the first enqueue, the task is done.
func TestWindowOutlivesItsTask(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		request := func() *ddqv1.EnqueueRequest {
			return &ddqv1.EnqueueRequest{Topic: "t", Idempotency: &ddqv1.Idempotency{Key: "k", WindowMs: 60_000, Scope: ddqv1.IdempotencyScope_IDEMPOTENCY_SCOPE_WINDOW}}
		}
		first := r.enqueue(request())
		r.mustAck("t", r.retrieve("t"))
		time.Sleep(59 * time.Second)
		if again := r.enqueue(request()); again.Id != first.Id || !again.Deduplicated {
			r.Errorf("within the window: %v", again)
		}
		time.Sleep(2 * time.Second)
		if next := r.enqueue(request()); next.Id == first.Id || next.Deduplicated {
			r.Errorf("after the window: %v", next)
		}
	})
}
