package client

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/ddqv1"
)

func (f *fakeServer) WaitTask(_ context.Context, r *ddqv1.WaitTaskRequest) (*ddqv1.WaitTaskResponse, error) {
	return f.wait(r)
}

func (f *fakeServer) CancelTask(_ context.Context, r *ddqv1.CancelTaskRequest) (*ddqv1.CancelTaskResponse, error) {
	return &ddqv1.CancelTaskResponse{
		Topic: "mail", Outcome: ddqv1.CancelOutcome_CANCEL_OUTCOME_TOO_LATE, State: ddqv1.TaskState_TASK_STATE_DONE,
	}, f.ask("CancelTask", r)
}

// polls answers waits: not settled as often as vain says, then done.
type polls struct {
	waits []int64 // wait_ms of each call
	vain  int
}

func (p *polls) answer(r *ddqv1.WaitTaskRequest) (*ddqv1.WaitTaskResponse, error) {
	if r.GetId() == "gone" {
		return nil, status.Error(codes.NotFound, "gone")
	}
	p.waits = append(p.waits, r.GetWaitMs())
	task := &ddqv1.Task{Topic: "mail", Id: r.GetId(), State: ddqv1.TaskState_TASK_STATE_RUNNING}
	if len(p.waits) <= p.vain {
		time.Sleep(time.Duration(r.GetWaitMs()) * time.Millisecond)
		return &ddqv1.WaitTaskResponse{Task: task}, nil
	}
	task.State, task.Result = ddqv1.TaskState_TASK_STATE_DONE, []byte("42")
	task.Attempts = []*ddqv1.Attempt{{Number: 1, Worker: "w", Node: "n", Outcome: ddqv1.AttemptOutcome_ATTEMPT_OUTCOME_ACKED}}
	return &ddqv1.WaitTaskResponse{Task: task, Settled: true}, nil
}

func TestWaitTakesSeveralPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &polls{vain: 3}
		c := start(t, &fakeServer{wait: p.answer}, Config{})
		task, err := c.Wait(t.Context(), "", "a", 2*time.Minute)
		if err != nil || task.State != StateDone || string(task.Result) != "42" || len(task.Attempts) != 1 || task.Attempts[0].Outcome != AttemptAcked {
			t.Errorf("waited for %+v, %v", task, err)
		}
		if len(p.waits) != 4 || p.waits[0] != longestPoll.Milliseconds() {
			t.Errorf("polls %v", p.waits)
		}

		p.waits, p.vain = nil, 100
		begun := time.Now()
		if task, err := c.Wait(t.Context(), "", "a", 45*time.Second); err != nil || task.State != StateRunning || time.Since(begun) != 45*time.Second {
			t.Errorf("waited %v for %+v, %v", time.Since(begun), task, err)
		}
		if len(p.waits) != 2 || p.waits[1] != 15_000 {
			t.Errorf("polls %v", p.waits)
		}
		if _, err := c.Wait(t.Context(), "", "gone", time.Minute); !errors.Is(err, ErrNotFound) {
			t.Errorf("a task that is gone: %v", err)
		}
	})
}

func TestCancelSaysWhatCameOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		c := start(t, f, Config{})
		out, err := c.Cancel(t.Context(), "", "a", CancelOptions{Wait: 1500 * time.Millisecond, OrDelete: true})
		if err != nil || out != (Cancellation{Topic: "mail", Outcome: CancelTooLate, State: StateDone}) || out.Outcome.String() != "too_late" {
			t.Errorf("cancel: %+v, %v", out, err)
		}
		if got, want := f.lastAsked(), `id:"a"wait_ms:1500or_delete:true`; got != want {
			t.Errorf("asked %s, want %s", got, want)
		}
	})
}
