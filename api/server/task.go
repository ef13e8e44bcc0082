package server

import (
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/wire"
	"github.com/ddq-io/ddq/store"
)

// foundWire converts a task as it stands.
func foundWire(f *service.Found) *ddqv1.Task {
	t := &ddqv1.Task{DeadReason: wire.Enum(reasonToWire[:], f.Reason), FinishedAt: wire.StampOrNil(f.Finished)}
	wire.PutTask(t, &f.Task)
	t.Topic = f.Topic
	t.State = wire.State(f.State)
	t.MaxRetries = int32(f.MaxRetries)
	t.RetryCount = wire.RetryCount(f.State, f.Attempt)
	t.WaitingFor, t.NextTokenTime = wire.Enum(waitingToWire[:], f.WaitingFor), wire.StampOrNil(f.NextToken)
	if f.State == store.StateRunning {
		t.Worker = wire.Text(f.Worker)
		t.HoldDeadline = wire.StampOrNil(f.Deadline)
		t.CancelRequested = f.Cancelled
	}
	return t
}

// historyWire is foundWire with what the task's attempts left behind, its journal, and the
// attempt that runs.
func historyWire(f *service.Found) *ddqv1.Task {
	t := foundWire(f)
	t.Result, t.Journal = f.Result, wire.ShowJournal(f.Journal)
	attempts := f.Attempts
	if f.State == store.StateRunning {
		attempts = append(attempts, store.Attempt{Number: f.Attempt, Worker: f.Worker, Node: f.Node, Due: f.Task.Due, Started: f.Started})
	}
	for i := range attempts {
		a := &attempts[i]
		t.Attempts = append(t.Attempts, &ddqv1.Attempt{
			Number:    int32(a.Number),
			Worker:    wire.Text(a.Worker),
			Node:      wire.Text(a.Node),
			StartedAt: wire.StampOrNil(a.Started),
			EndedAt:   wire.StampOrNil(a.Ended),
			Outcome:   wire.Enum(outcomeToWire[:], a.Outcome),
			Error:     wire.Text(a.Error),
			DueAt:     wire.StampOrNil(a.Due),
			TraceId:   a.Trace.Bytes(),
		})
	}
	return t
}
