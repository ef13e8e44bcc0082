package server

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/server/status/statustest"
)

// keeps creates topic t, which keeps done tasks for an hour.
func (r *rig) keeps() {
	r.Helper()
	must(r, created("t", &ddqv1.TopicPolicy{DoneRetentionMs: proto.Int64(time.Hour.Milliseconds())})(r))
}

func TestResultIsReadOnceTheTaskIsDone(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		r.keeps()
		d := r.hold("t", "a")
		got, err := r.queue.GetTask(r.Context(), &ddqv1.GetTaskRequest{Id: "a"})
		must(r, err)
		if a := got.Task.Attempts; len(a) != 1 || a[0].EndedAt != nil || a[0].StartedAt == nil || a[0].Node == "" || a[0].Number != 1 {
			r.Errorf("attempts of a running task: %v", a)
		}
		done := make(chan *ddqv1.WaitTaskResponse, 1)
		go func() {
			resp, err := r.queue.WaitTask(r.Context(), &ddqv1.WaitTaskRequest{Topic: "t", Id: "a", WaitMs: 60_000})
			if err != nil {
				r.Errorf("wait: %v", err)
			}
			done <- resp
		}()
		synctest.Wait()
		result := bytes.Repeat([]byte{0xff, 0}, 128<<10)
		_, err = r.queue.Ack(r.Context(), &ddqv1.AckRequest{Topic: "t", Ack: &ddqv1.Ack{TaskId: "a", HoldToken: d.HoldToken, Result: result}})
		must(r, err)
		if resp := <-done; !resp.Settled || !bytes.Equal(resp.Task.Result, result) || resp.Task.State != ddqv1.TaskState_TASK_STATE_DONE {
			r.Errorf("waited for %.200v", resp)
		}
		got, err = r.queue.GetTask(r.Context(), &ddqv1.GetTaskRequest{Id: "a"})
		must(r, err)
		a := got.Task.Attempts
		if !bytes.Equal(got.Task.Result, result) || len(a) != 1 || a[0].Outcome != ddqv1.AttemptOutcome_ATTEMPT_OUTCOME_ACKED || a[0].EndedAt == nil {
			r.Errorf("got %.200v", got)
		}
		list, err := r.queue.ListTasks(r.Context(), &ddqv1.ListTasksRequest{Topic: "t", State: ddqv1.TaskState_TASK_STATE_DONE})
		if err != nil || len(list.Tasks) != 1 || list.Tasks[0].Result != nil {
			r.Errorf("listed %.200v, %v", list, err)
		}
	})
}

func TestWaitEndsWithTheNode(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		r.hold("t", "a")
		failed := make(chan error, 1)
		go func() {
			_, err := r.queue.WaitTask(r.Context(), &ddqv1.WaitTaskRequest{Topic: "t", Id: "a", WaitMs: 60_000})
			failed <- err
		}()
		synctest.Wait()
		stopped := r.stopping(10 * time.Second)
		if got := statustest.Look(r.T, <-failed); got.Code != codes.Unavailable || got.Reason != "DRAINING" {
			r.Errorf("the wait ended with %+v", got)
		}
		_, err := stopped()
		must(r, err)
	})
}

var waitRefusals = []refusal{
	{"wait for an unknown task", waitedFor("a", 0), codes.NotFound, "NO_TASK", "id", "", 0},
	{"wait for no id", waitedFor("", 0), codes.InvalidArgument, "BAD_ID", "id", "", 0},
	{"negative wait", waitedFor("a", -1), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "wait_ms", "", 0},
	{"wait over the limit", waitedFor("a", 60_001), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "wait_ms", "", 0},
	{"cancel of an unknown task", cancelled(&ddqv1.CancelTaskRequest{Topic: "t", Id: "a"}), codes.NotFound, "NO_TASK", "id", "", 0},
	{"cancel of an unknown topic", cancelled(&ddqv1.CancelTaskRequest{Topic: "u", Id: "a"}), codes.NotFound, "NO_TOPIC", "topic", "", 0},
	{"cancel with a wait over the limit", cancelled(&ddqv1.CancelTaskRequest{Topic: "t", Id: "a", WaitMs: 60_001}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "wait_ms", "", 0},
	{"cancel of a pending task", func(r *rig) error {
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t", Id: "a", When: &ddqv1.EnqueueRequest_Delay{Delay: durationpb.New(time.Hour)}})
		return cancelled(&ddqv1.CancelTaskRequest{Topic: "t", Id: "a"})(r)
	}, codes.FailedPrecondition, "TASK_NOT_RUNNING", "id", "scheduled", 0},
	{"large result", func(r *rig) error {
		d := r.hold("t", "a")
		_, err := r.queue.Ack(r.Context(), &ddqv1.AckRequest{Topic: "t", Ack: &ddqv1.Ack{TaskId: "a", HoldToken: d.HoldToken, Result: make([]byte, 256<<10+1)}})
		return err
	}, codes.InvalidArgument, "RESULT_TOO_LARGE", "result", "", 0},
}

// waitedFor makes a call of WaitTask for a task of topic t, which there is.
func waitedFor(id string, ms int64) func(r *rig) error {
	return func(r *rig) error {
		r.keeps()
		_, err := r.queue.WaitTask(r.Context(), &ddqv1.WaitTaskRequest{Topic: "t", Id: id, WaitMs: ms})
		return err
	}
}

// cancelled makes a call of CancelTask, while there is topic t.
func cancelled(req *ddqv1.CancelTaskRequest) func(r *rig) error {
	return func(r *rig) error {
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t"})
		_, err := r.queue.CancelTask(r.Context(), req)
		return err
	}
}

func TestWaitsAndCancelsAreRefused(t *testing.T) {
	for _, c := range waitRefusals {
		t.Run(c.name, c.check)
	}
}

func TestCancelGoesOverTheStream(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		r.keeps()
		w := r.subscribe(1)
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t", Id: "a"})
		d := w.delivery()
		out, err := r.queue.CancelTask(r.Context(), &ddqv1.CancelTaskRequest{Id: "a"})
		if err != nil || out.Outcome != ddqv1.CancelOutcome_CANCEL_OUTCOME_REQUESTED || out.Topic != "t" || out.State != ddqv1.TaskState_TASK_STATE_RUNNING {
			r.Fatalf("cancel: %v, %v", out, err)
		}
		f := w.next()
		if len(f.Cancels) != 1 || f.Cancels[0].TaskId != "a" || !bytes.Equal(f.Cancels[0].HoldToken, d.HoldToken) {
			r.Fatalf("the stream brought %v", f)
		}
		got, err := r.queue.GetTask(r.Context(), &ddqv1.GetTaskRequest{Id: "a"})
		if err != nil || !got.Task.CancelRequested {
			r.Errorf("got %v, %v", got, err)
		}
		w.send(&ddqv1.SubscribeRequest{Sequence: 1, Extends: []*ddqv1.Extend{{TaskId: "a", HoldToken: d.HoldToken}}})
		if s := w.next().Settled; len(s) != 1 || len(s[0].Results) != 1 || !s[0].Results[0].CancelRequested {
			r.Errorf("the extend was answered %v", s)
		}
		x, err := r.queue.Extend(r.Context(), &ddqv1.ExtendRequest{Topic: "t", Extend: &ddqv1.Extend{TaskId: "a", HoldToken: d.HoldToken}})
		if err != nil || !x.CancelRequested {
			r.Errorf("the unary extend was answered %v, %v", x, err)
		}
		w.send(&ddqv1.SubscribeRequest{Sequence: 2, Nacks: []*ddqv1.Nack{{TaskId: "a", HoldToken: d.HoldToken}}})
		w.next() // the nack's answer
		out, err = r.queue.CancelTask(r.Context(), &ddqv1.CancelTaskRequest{Id: "a", WaitMs: 1000})
		if err != nil || out.Outcome != ddqv1.CancelOutcome_CANCEL_OUTCOME_TOO_LATE || out.State != ddqv1.TaskState_TASK_STATE_DEAD {
			r.Errorf("cancel again: %v, %v", out, err)
		}
		got, err = r.queue.GetTask(r.Context(), &ddqv1.GetTaskRequest{Id: "a"})
		if err != nil || got.Task.DeadReason != ddqv1.DeadReason_DEAD_REASON_CANCELLED {
			r.Errorf("got %v, %v", got, err)
		}
	})
}
