package worker

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// checkpoint is what a name of a held task returned, on its way to the server.
type checkpoint struct {
	h    *held
	wire *ddqv1.Checkpoint
	kept chan bool // whether a stream's server says that it is; has room for the one answer
}

// checkpoint implements checkpointer. It goes with what else a stream has to say, and by a call of
// its own when that does not go well.
func (h *held) checkpoint(ctx context.Context, name string, value []byte) error {
	c := &checkpoint{h: h, kept: make(chan bool, 1), wire: &ddqv1.Checkpoint{
		// The frame may still be written when ctx ends, and the value is the handler's again.
		TaskId: h.ack.GetTaskId(), HoldToken: h.ack.GetHoldToken(), Name: name, Value: bytes.Clone(value),
	}}
	if h.sub.sayCheckpoint(c) {
		select {
		case kept := <-c.kept:
			if kept {
				return nil
			}
		case <-ctx.Done():
		}
	}
	return h.callCheckpoint(ctx, c.wire)
}

// callCheckpoint has the server keep c. It is said again while the server cannot take it, until ctx
// ends: a name is kept once, however often that is said.
func (h *held) callCheckpoint(ctx context.Context, c *ddqv1.Checkpoint) error {
	name, r := c.GetName(), &ddqv1.CheckpointRequest{Topic: h.sub.topic, Checkpoint: c}
	pauses := reconnects()
	for {
		_, err := h.sub.rpc.Checkpoint(ctx, r)
		switch code := status.Code(err); {
		case err == nil:
			return nil
		case reasonOf(err) == "HOLD_LOST":
			return fmt.Errorf("checkpoint %q: %w", name, ErrHoldLost)
		case code != codes.Unavailable && code != codes.Unknown:
			return fmt.Errorf("checkpoint %q: %w", name, err)
		}
		select {
		case <-time.After(max(pauses.NextBackOff(), retryAfter(err))):
		case <-ctx.Done():
			return fmt.Errorf("checkpoint %q: %w: %w", name, context.Cause(ctx), err)
		}
	}
}

// stepResult implements checkpointer.
func (h *held) stepResult(ctx context.Context, step string) ([]byte, error) {
	of := h.task.Step
	r := &ddqv1.GetStepResultsRequest{Topic: cmp.Or(of.WorkflowTopic, h.sub.topic), Id: of.Workflow, Step: step}
	got, err := h.sub.flows.GetStepResults(ctx, r)
	switch {
	case err != nil:
		return nil, fmt.Errorf("result of %q: %w", step, err)
	case len(got.GetResults()) == 0:
		return nil, nil
	}
	return got.GetResults()[0].GetResult(), nil
}

// reasonOf is the reason that a server gives for an error, empty for none.
func reasonOf(err error) string {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			return info.GetReason()
		}
	}
	return ""
}
