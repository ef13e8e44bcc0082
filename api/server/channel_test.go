package server

import (
	"context"
	"errors"
	"io"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/server/delivery"
	"github.com/ddq-io/ddq/api/server/status/statustest"
)

func (r *rig) within() ddqv1.DelayQueueServiceClient {
	return ddqv1.NewDelayQueueServiceClient(r.server.Channel())
}

func TestChannelAnswersAsThePort(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		local := r.within()
		must(r, func() error {
			_, err := local.Enqueue(r.Context(), &ddqv1.EnqueueRequest{Topic: "t", Id: "a"})
			return err
		}())
		for _, request := range []*ddqv1.GetTaskRequest{{Topic: "t", Id: "a"}, {Topic: "t", Id: "b"}, {Topic: "?", Id: "a"}, {}} {
			far, farErr := r.queue.GetTask(r.Context(), request)
			near, nearErr := local.GetTask(r.Context(), request)
			if !proto.Equal(far, near) || !reflect.DeepEqual(statustest.Look(r.T, farErr), statustest.Look(r.T, nearErr)) {
				r.Errorf("%v: the port answers %v, %v, and the channel %v, %v", request, far, farErr, near, nearErr)
			}
		}
		r.store.fail(errPanic)
		_, err := local.GetTask(r.Context(), &ddqv1.GetTaskRequest{Topic: "t", Id: "a"})
		if got := statustest.Look(r.T, err); got.Code != codes.Internal || got.Reason != "INTERNAL" {
			r.Errorf("a panic became %v", err)
		}
	})
}

// A call whose answer is there before the request was sent tells that answer, and not that sending failed.
func TestChannelTellsWhatWasAnsweredEarly(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		conn := r.server.Channel()
		r.server.Stop(r.Context())
		for range 64 { // as whether a request can still be sent is up to chance
			stream, err := conn.NewStream(r.Context(), &grpc.StreamDesc{ServerStreams: true}, ddqv1.DelayQueueService_WatchTasks_FullMethodName)
			must(r, err)
			synctest.Wait()
			must(r, stream.SendMsg(&ddqv1.WatchTasksRequest{Topic: "t"}))
			must(r, stream.CloseSend())
			err = stream.RecvMsg(&ddqv1.WatchTasksResponse{})
			if got := statustest.Look(r.T, err); got.Reason != "DRAINING" {
				r.Errorf("got %v", err)
			}
		}
	})
}

func TestChannelCopiesMessages(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		request := &ddqv1.EnqueueRequest{Topic: "t", Id: "a", Payload: []byte("before")}
		_, err := r.within().Enqueue(r.Context(), request)
		must(r, err)
		copy(request.Payload, "after!")
		found, err := r.within().GetTask(r.Context(), &ddqv1.GetTaskRequest{Topic: "t", Id: "a"})
		must(r, err)
		if got := string(found.Task.Payload); got != "before" {
			r.Errorf("the payload is %q", got)
		}
	})
}

func TestChannelCarriesStreams(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		stream, err := r.within().EnqueueStream(r.Context())
		must(r, err)
		for i := range uint64(3) {
			must(r, stream.Send(&ddqv1.EnqueueStreamRequest{Sequence: i, Tasks: []*ddqv1.EnqueueRequest{{Topic: "t"}, {Topic: "?"}}}))
		}
		must(r, stream.CloseSend())
		for range 3 {
			reply, err := stream.Recv()
			must(r, err)
			if len(reply.Results) != 2 || reply.Results[0].Error != nil || reply.Results[1].Error.GetReason() != "BAD_NAME" {
				r.Errorf("got %v", reply)
			}
		}
		if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
			r.Errorf("the stream ended with %v", err)
		}
	})
}

func TestChannelGivesBackWhatItsCallerLeft(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		ctx, leave := context.WithCancel(r.Context())
		time.AfterFunc(time.Second, leave)
		_, err := r.within().Retrieve(ctx, &ddqv1.RetrieveRequest{Topic: "t", WaitMs: 60_000})
		if got := statustest.Look(r.T, err); got.Code != codes.Canceled {
			r.Errorf("the poll ended with %v", err)
		}
		if d := r.hold("t", "a"); d.Task.RetryCount != 0 {
			r.Errorf("got %v", d)
		}
	})
}

func TestStopWaitsForTheChannel(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		polled := make(chan error, 1)
		go func() {
			_, err := r.within().Retrieve(r.Context(), &ddqv1.RetrieveRequest{Topic: "t", WaitMs: 60_000})
			polled <- err
		}()
		synctest.Wait()
		if took, err := r.stopping(10 * time.Second)(); err != nil || took != 0 {
			r.Errorf("stopped after %v: %v", took, err)
		}
		_, err := r.within().Enqueue(r.Context(), &ddqv1.EnqueueRequest{Topic: "t"})
		for what, err := range map[string]error{"a poll": <-polled, "a new call": err} {
			if got := statustest.Look(r.T, err); got.Code != codes.Unavailable || got.Reason != "DRAINING" || got.Retry == 0 {
				r.Errorf("%s ended with %+v", what, got)
			}
		}
	})
}

func TestStopCutsOffCallsOfTheChannel(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t"})
		resume := r.store.stop()
		defer resume()
		called := make(chan error, 1)
		go func() {
			_, err := r.within().Enqueue(r.Context(), &ddqv1.EnqueueRequest{Topic: "t"})
			called <- err
		}()
		synctest.Wait()
		took, err := r.stopping(3 * time.Second)()
		if !errors.Is(err, context.DeadlineExceeded) || took != 3*time.Second {
			r.Errorf("stopped after %v: %v", took, err)
		}
		if err := <-called; err == nil {
			r.Error("a task whose storing is unknown was acknowledged")
		}
	})
}

func TestSettleAnswersEach(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		a, b, c := r.hold("t", "a"), r.hold("t", "b"), r.hold("t", "c")
		request := &ddqv1.SettleRequest{
			Topic:   "t",
			Acks:    []*ddqv1.Ack{{TaskId: "a", HoldToken: a.HoldToken}, {TaskId: "x", HoldToken: a.HoldToken}, {TaskId: "y"}},
			Nacks:   []*ddqv1.Nack{{TaskId: "b", HoldToken: b.HoldToken, DelayMs: proto.Int64(-1)}},
			Extends: []*ddqv1.Extend{{TaskId: "c", HoldToken: c.HoldToken, VisibilityTimeoutMs: 5000}},
		}
		answer, err := r.queue.Settle(r.Context(), request)
		must(r, err)
		got := make(map[string]string)
		for _, result := range answer.Results {
			got[result.TaskId] = result.Error.GetReason()
			if result.TaskId == "c" && result.HoldMs != 5000 {
				r.Errorf("extended to %d ms", result.HoldMs)
			}
		}
		for id, want := range map[string]string{"x": "HOLD_LOST", "y": "BAD_TOKEN", "b": "BAD_DELAY", "c": ""} {
			if reason, told := got[id]; !told || reason != want {
				r.Errorf("%s: got %q, want %q", id, reason, want)
			}
		}
		if _, told := got["a"]; told {
			r.Errorf("an ack that went as asked is told of: %v", answer)
		}
		_, err = r.queue.GetTask(r.Context(), &ddqv1.GetTaskRequest{Topic: "t", Id: "a"})
		if got := statustest.Look(r.T, err); got.Code != codes.NotFound {
			r.Errorf("the acked task: %v", err)
		}
	})
}

func TestSettleIsBounded(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		request := &ddqv1.SettleRequest{Topic: "t"}
		for range delivery.MaxSettles + 1 {
			request.Acks = append(request.Acks, &ddqv1.Ack{TaskId: "a"})
		}
		_, err := r.queue.Settle(r.Context(), request)
		if got := statustest.Look(r.T, err); got.Code != codes.InvalidArgument || got.Reason != "BATCH_SIZE" {
			r.Errorf("got %v", err)
		}
	})
}
