package server

import (
	"context"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/wire"
	"github.com/ddq-io/ddq/store"
)

// WaitTask is a long poll, which ends when the node goes away.
func (q *queue) WaitTask(ctx context.Context, r *ddqv1.WaitTaskRequest) (*ddqv1.WaitTaskResponse, error) {
	wait, e := wire.Span(r.WaitMs, "wait_ms")
	if e != nil {
		return nil, e
	}
	poll, done := q.poll(ctx)
	defer done()
	found, err := q.service.Tasks.Wait(poll, r.Topic, r.Id, wait)
	if err != nil {
		return nil, q.pollError(ctx, err)
	}
	settled := !found.State.Pending() && found.State != store.StateRunning
	return &ddqv1.WaitTaskResponse{Task: historyWire(&found), Settled: settled}, nil
}

// CancelTask is a long poll like WaitTask. When that is cut short, the request stands.
func (q *queue) CancelTask(ctx context.Context, r *ddqv1.CancelTaskRequest) (*ddqv1.CancelTaskResponse, error) {
	wait, e := wire.Span(r.WaitMs, "wait_ms")
	if e != nil {
		return nil, e
	}
	poll, done := q.poll(ctx)
	defer done()
	out, err := q.service.Tasks.Cancel(ctx, poll, r.Topic, r.Id, wait, r.OrDelete)
	if err != nil {
		return nil, err
	}
	return &ddqv1.CancelTaskResponse{
		Topic:   out.Topic,
		Outcome: wire.Enum(cancelToWire[:], out.Outcome),
		State:   wire.State(out.State),
	}, nil
}
