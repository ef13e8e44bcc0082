package server

import (
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// followed acks a task with what comes next.
func followed(next ...*ddqv1.EnqueueRequest) func(r *rig) error {
	return func(r *rig) error {
		_, err := r.queue.Enqueue(r.Context(), &ddqv1.EnqueueRequest{Topic: "orders"})
		must(r, err)
		d := r.take("orders")
		refused := r.finish(d, func(a *ddqv1.Ack) { a.Enqueue = next })
		if err := r.finish(d, func(*ddqv1.Ack) {}); err != nil {
			r.Errorf("the task is not held any more: %v", err)
		}
		return refused
	}
}

func nexts(n int) []*ddqv1.EnqueueRequest {
	list := make([]*ddqv1.EnqueueRequest, n)
	for i := range list {
		list[i] = &ddqv1.EnqueueRequest{Topic: "orders"}
	}
	return list
}

var nextRefusals = []refusal{
	{"101 tasks", followed(nexts(101)...), codes.InvalidArgument, "BATCH_SIZE", "enqueue", "", 0},
	{"over 1 MiB", followed(
		&ddqv1.EnqueueRequest{Topic: "orders", Payload: make([]byte, 600<<10)}, &ddqv1.EnqueueRequest{Topic: "orders", Payload: make([]byte, 600<<10)},
	), codes.InvalidArgument, "BATCH_SIZE", "enqueue", "", 0},
	{"a task of a bad topic", followed(&ddqv1.EnqueueRequest{Topic: "orders"}, &ddqv1.EnqueueRequest{Topic: "a b"}), codes.InvalidArgument, "BAD_NAME", "enqueue[1].topic", "", 0},
	{"a task of bad priority", followed(&ddqv1.EnqueueRequest{Topic: "orders", Priority: 10}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "enqueue[0].priority", "", 0},
}

// The task of an ack that is refused stays held.
func TestEveryRefusalOfWhatAnAckEnqueuesHasItsCodeAndDetails(t *testing.T) {
	testRefusals(t, nextRefusals)
}
